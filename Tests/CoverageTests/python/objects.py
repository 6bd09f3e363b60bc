import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import gc
import itertools
import pickle
import weakref


class Colour(enum.Flag):
    RED = enum.auto()
    BLUE = enum.auto()


@dataclasses.dataclass(order=True)
class Point:
    x: int
    y: int = 0
    others: list = dataclasses.field(default_factory=list)

    def __del__(self):
        pass


def generated():
    try:
        received = yield 1
        yield from range(received)
    finally:
        print("closed")


points = sorted(Point(n % 3, n) for n in range(10))
points[0].others.append(points[0])
kept = weakref.ref(points[0])
assert pickle.loads(pickle.dumps(points[1:])) == points[1:] == copy.deepcopy(points[1:])
del points[0]
gc.collect()
print(kept(), Colour.RED | Colour.BLUE, collections.Counter("abracadabra").most_common(2))
steps = generated()
print(next(steps), steps.send(3), list(itertools.islice(steps, 1)))
steps.close()
with contextlib.suppress(ZeroDivisionError):
    functools.reduce(lambda a, b: a / b, [1, 0])
match {"kind": "point", "at": (1, 2)}:
    case {"kind": "point", "at": (x, y)}:
        print(x, y, {*range(3)} ^ {2, 5}, [*map(str, reversed((1, 2)))], ~True)
try:
    raise ExceptionGroup("several", [ValueError(1), TypeError(2)])
except* ValueError as group:
    print(group.exceptions)
except* TypeError:
    pass
