//! What some processors of a kind can do and others cannot, and how it is used: work is built twice, once for each.

/// Shows that the processor has AVX2, AES and what all that have AVX2 have as well. There is none of these elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Extensions(());

/// Work that is built for processors with `Extensions` and for those without. `run` has to be `#[inline(always)]`: else it
/// is built once, for all.
pub trait Work {
    /// What it comes to.
    type Result;

    /// Do it; `extensions` is known when it is compiled.
    fn run(self, extensions: Option<Extensions>) -> Self::Result;
}

impl Extensions {
    /// Ask the processor.
    pub fn detect() -> Option<Extensions> {
        #[cfg(target_arch = "x86_64")]
        {
            use std::is_x86_feature_detected as has;
            let has_all = has!("avx2") && has!("aes") && has!("bmi1") && has!("bmi2") && has!("popcnt");
            has_all.then_some(Extensions(()))
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            None
        }
    }
}

/// Do it as it was built for the processor.
#[inline(always)]
pub fn run<W: Work>(extensions: Option<Extensions>, work: W) -> W::Result {
    #[cfg(target_arch = "x86_64")]
    if let Some(extensions) = extensions {
        #[target_feature(enable = "avx2,aes,bmi1,bmi2,popcnt")]
        fn run_extended<W: Work>(work: W, extensions: Extensions) -> W::Result {
            work.run(Some(extensions))
        }
        // SAFETY: the processor has them, or there would be no `Extensions`. Measured: docs/log.md.
        return unsafe { run_extended(work, extensions) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = extensions;
    work.run(None)
}
