import concurrent.futures
import queue
import threading

jobs, done, lock = queue.Queue(), [], threading.Lock()


def work():
    while (job := jobs.get()) is not None:
        with lock:
            done.append(job * job)


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for job in [*range(200), *[None] * len(threads)]:
    jobs.put(job)
for thread in threads:
    thread.join()
with concurrent.futures.ThreadPoolExecutor(3) as pool:
    print(sum(done), sum(pool.map(len, ["a", "bb"] * 20)))
