#!/usr/bin/env bash
# The tests that need packages which are no dependency: real clusters of Ray and Spark, readers of Parquet, an object
# store, what the guides compare with. They live in a venv of their own, on top of .venv, which `make` has made.
#
# What cannot be installed, or does not start on this machine, is named here, and its tests are skipped with a reason.
set -euo pipefail
cd "$(dirname "$0")/.."

venv=.venv-extras
[ -x $venv/bin/python ] || .venv/bin/python -m venv $venv
site() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])'; }
echo "import site; site.addsitedir('$(site .venv)')" >"$(site $venv)/below.pth"

install() {
    timeout 300 $venv/bin/python -m pip install --quiet --timeout 30 --retries 2 "$@" || echo "left out: $*"
}
while read -r -a packages; do
    install "${packages[@]}"
done < <($venv/bin/python scripts/extras.py)

without=()
starts() { # NAME CODE: leave NAME out where the code does not come to its end
    timeout 180 $venv/bin/python -W ignore -c "$2" >/dev/null 2>&1 || without+=("$1")
}
starts ray 'import ray; ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False); ray.shutdown()'
starts spark 'from pyspark.sql import SparkSession as S; S.builder.master("local[1]").getOrCreate().range(9).count()'
[ ${#without[@]} -eq 0 ] || echo "does not start here: ${without[*]}"
export TOKBATCH_TESTS_WITHOUT="${without[*]}"

$venv/bin/python -m pytest --timeout 600 \
    tests/job/test_ray_workers.py tests/frontends/test_ray_data.py tests/frontends/test_spark.py \
    tests/frontends/test_cluster_recipes.py tests/test_guides.py tests/test_drop_in.py tests/job/test_recipes.py \
    tests/job/test_readers.py tests/job/test_object_store.py
