# Partitions on Spark, and their reduce where this runs: spark-submit [OPTIONS] THIS FILE
import json
import os
import re
import subprocess
import sys

from pyspark import SparkConf, SparkContext, TaskContext

# Each partition runs in the folder and with the variables of this program (sort orders by LC_ALL).
FOLDER = os.getcwd()
VARIABLES = {name: value for name, value in os.environ.items() if "SPARK" not in name}


def run(part):
    number, data = part
    command = [HOSEPIPE, "__part", WORK, str(number)] + RECORDS.split()
    done = subprocess.run(command, input=data, capture_output=True, cwd=FOLDER, env=VARIABLES)
    said = ["", *done.stderr.decode(errors="replace").strip().splitlines()[-5:]]
    result = json.loads(done.stdout or "{}")
    if done.returncode:
        ended = "could not be run" if done.returncode == 125 else "was ended"
        result["partition"], result["failure"] = number, result.get("failure", ended) + ": ".join(said)
    # A process in Python runs partitions one after the other.
    with open(f"{WORK}/{os.uname().nodename}.{os.getpid()}.results", "a") as file:
        file.write(json.dumps(result) + "\n")
    if done.returncode == 0:
        return None
    problem = f"partition {number + 1} {result['failure']}"
    if KEEP_GOING and TaskContext.get().attemptNumber() >= most_retries:
        return problem
    raise RuntimeError(problem)


def read_by_spark(number, url):
    path = sc._jvm.org.apache.hadoop.fs.Path(url)
    if path.getFileSystem(sc._jsc.hadoopConfiguration()).getFileStatus(path).isDirectory():
        sys.exit(f"{url} is a folder: an input is one file")
    # All of it, in the memory of an executor.
    return sc.binaryFiles(url, 1).map(lambda file: (number, file[1]))


conf = SparkConf().setIfMissing("spark.log.level", "WARN")
conf.setIfMissing("spark.ui.showConsoleProgress", str(sys.stderr.isatty()).lower())
# Without a cluster Spark takes the number of attempts from the master alone: local[THREADS,ATTEMPTS], 1 where it names none.
local = re.fullmatch(r"local(?:\[\s*(\d+|\*)\s*(?:,\s*(\d+)\s*)?\])?", conf.get("spark.master", "local[*]"))
most_retries = int(RETRIES or int(local[2] or 1 if local else conf.get("spark.task.maxFailures", "4")) - 1)
if local:
    conf.setMaster(f"local[{local[1] or 1},{most_retries + 1}]")
conf.set("spark.task.maxFailures", str(most_retries + 1))
sc = SparkContext(appName="hosepipe spread", conf=conf)
with open(f"{WORK}/left") as left, open(f"{WORK}/plan.jsonl") as plan:
    planned = [json.loads(line)["partitions"][0] for line in plan]
    ranges = {number: planned[number] for number in map(int, left)}
# A character stands for each byte of a name.
paths = {number: os.fsdecode(found[0]["file"]["path"].encode("latin-1")) for number, found in ranges.items() if found}
urls = {number: path for number, path in paths.items() if not path.startswith("/")}
parts = [(number, b"") for number in ranges if number not in urls]
rdds = [read_by_spark(number, url) for number, url in urls.items()]
if parts:
    rdds.append(sc.parallelize(parts, min(len(parts), int(JOBS or len(parts)))))
problems = [problem for problem in sc.union(rdds).map(run).collect() if problem]
sc.stop()
if problems:
    sys.exit("\n".join(problems))
with open(f"{WORK}/reduced", "w") as reduced, open(f"{WORK}/reduce.log", "w") as log:
    status = subprocess.run([HOSEPIPE, "__part", WORK], stdout=reduced, stderr=log).returncode
sys.exit(status if status >= 0 else 128 - status)
