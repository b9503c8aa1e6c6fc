//! Functions of a few neighbouring codes, written as unions of products: "one of these, then one of those, ...".

/// Codes in a window.
pub const WIDTH: usize = 5;
/// Most codes: a bit each in 16.
pub const MOST_CODES: usize = 16;

/// For each place of a window, the codes that may stand there, a bit each.
pub type Product = [u16; WIDTH];

/// A set of windows: for each choice of all codes but the last, the last ones, a bit each.
#[derive(Clone)]
pub struct WindowSet {
    codes: usize,
    rows: Vec<u16>,
}

impl WindowSet {
    /// The windows of so many codes for which this holds. Codes come in the order of the text.
    pub fn of(codes: usize, mut holds: impl FnMut([usize; WIDTH]) -> bool) -> WindowSet {
        let mut rows = vec![0; codes.pow(WIDTH as u32 - 1)];
        for (index, row) in rows.iter_mut().enumerate() {
            let mut window = [0; WIDTH];
            window[..WIDTH - 1].copy_from_slice(&first_codes(index, codes));
            for code in 0..codes {
                window[WIDTH - 1] = code;
                *row |= u16::from(holds(window)) << code;
            }
        }
        WindowSet { codes, rows }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|&row| row == 0)
    }

    /// Whether a window is there.
    pub fn contains(&self, window: [usize; WIDTH]) -> bool {
        let row = window[..WIDTH - 1].iter().fold(0, |row, &code| row * self.codes + code);
        self.rows[row] >> window[WIDTH - 1] & 1 == 1
    }

    /// The rows of the first codes of a product.
    fn rows_of(&self, product: &Product) -> impl Iterator<Item = usize> {
        let mut rows = vec![0];
        for &allowed in &product[..WIDTH - 1] {
            let longer = rows.iter().flat_map(|row| bits(allowed).map(move |code| row * self.codes + code));
            rows = longer.collect();
        }
        rows.into_iter()
    }

    /// The last codes with which some window of a product is there.
    fn last_codes(&self, product: &Product) -> u16 {
        self.rows_of(product).fold(0, |all, row| all | self.rows[row])
    }

    /// How many windows of a product are there.
    fn count(&self, product: &Product) -> u32 {
        self.rows_of(product).map(|row| (self.rows[row] & product[WIDTH - 1]).count_ones()).sum()
    }

    fn remove(&mut self, product: &Product) {
        for row in self.rows_of(product) {
            self.rows[row] &= !product[WIDTH - 1];
        }
    }

    /// Some windows that are there, far from each other, as products.
    fn some(&self) -> Vec<Product> {
        const SOME: usize = 8;
        let rows: Vec<usize> = (0..self.rows.len()).filter(|&row| self.rows[row] != 0).collect();
        let chosen = (0..SOME.min(rows.len())).map(|at| rows[at * rows.len() / SOME.min(rows.len())]);
        chosen
            .map(|row| {
                let mut product = [0; WIDTH];
                product[WIDTH - 1] = 1 << self.rows[row].trailing_zeros();
                for (place, code) in first_codes(row, self.codes).into_iter().enumerate() {
                    product[place] = 1 << code;
                }
                product
            })
            .collect()
    }

    /// The smallest product that has all of them.
    fn hull(&self) -> Product {
        let mut hull = [0; WIDTH];
        for (row, &last) in self.rows.iter().enumerate().filter(|(_, &last)| last != 0) {
            for (place, code) in first_codes(row, self.codes).into_iter().enumerate() {
                hull[place] |= 1 << code;
            }
            hull[WIDTH - 1] |= last;
        }
        hull
    }

    /// Find at most so many products that have `self` in them and nothing of `others`. Gives what is left of `self` as well.
    pub fn cover(&self, others: &WindowSet, most: usize) -> (Vec<Product>, WindowSet) {
        // In which order places are widened: what is far away seldom matters.
        const ORDERS: [[usize; WIDTH]; 4] = [[0, 4, 1, 3, 2], [0, 1, 4, 2, 3], [4, 0, 1, 2, 3], [4, 3, 0, 1, 2]];
        let mut left = self.clone();
        let mut products = vec![];
        while products.len() < most {
            let widened = left.some().into_iter().flat_map(|seed| ORDERS.map(|order| others.widened(seed, order)));
            let Some(best) = widened.max_by_key(|product| left.count(product)) else { break };
            left.remove(&best);
            products.push(best);
        }
        (products, left)
    }

    /// The same where the last product may have anything in it, so that nothing is left.
    pub fn cover_all(&self, others: &WindowSet, most: usize) -> Vec<Product> {
        let (mut products, left) = self.cover(others, most);
        if !left.is_empty() {
            let (fewer, left) = self.cover(others, most - 1);
            products = fewer;
            products.push(left.hull());
        }
        products
    }

    /// Allow more in a product, place by place, as long as none of these windows is in it.
    fn widened(&self, seed: Product, order: [usize; WIDTH]) -> Product {
        let mut product = seed;
        for place in order {
            if place == WIDTH - 1 {
                product[place] |= !self.last_codes(&product) & all_codes(self.codes);
                continue;
            }
            for code in 0..self.codes {
                let mut other = product;
                other[place] = 1 << code;
                if self.last_codes(&other) & product[WIDTH - 1] == 0 {
                    product[place] |= 1 << code;
                }
            }
        }
        product
    }
}

/// The codes of a row: all of a window but the last.
fn first_codes(row: usize, codes: usize) -> [usize; WIDTH - 1] {
    let mut rest = row;
    let mut first = [0; WIDTH - 1];
    for code in first.iter_mut().rev() {
        *code = rest % codes;
        rest /= codes;
    }
    first
}

/// A bit for each code.
fn all_codes(codes: usize) -> u16 {
    ((1u32 << codes) - 1) as u16
}

/// The places of the bits of a word.
fn bits(word: u16) -> impl Iterator<Item = usize> {
    (0..16).filter(move |place| word >> place & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has(products: &[Product], window: [usize; WIDTH]) -> bool {
        products.iter().any(|product| window.iter().zip(product).all(|(&code, allowed)| allowed >> code & 1 == 1))
    }

    #[test]
    fn products_have_what_is_wanted_and_nothing_else() {
        let mut state = 7u32;
        let mut random = move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 16
        };
        for _ in 0..20 {
            // Some random products, and what is none of them.
            let wanted: Vec<Product> = (0..3).map(|_| std::array::from_fn(|_| random() as u16 & 0xF)).collect();
            let set = WindowSet::of(4, |window| has(&wanted, window));
            let others = WindowSet::of(4, |window| !has(&wanted, window));
            let (products, left) = set.cover(&others, 100);
            assert!(left.is_empty());
            let again = WindowSet::of(4, |window| has(&products, window));
            assert_eq!(again.rows, set.rows);
            let few = set.cover_all(&others, 2);
            assert!(few.len() <= 2);
            WindowSet::of(4, |window| {
                assert!(!set.contains(window) || has(&few, window));
                false
            });
        }
    }
}
