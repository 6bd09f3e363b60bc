def inner(values):
    return values["missing"]


try:
    inner({})
except KeyError as error:
    raise RuntimeError("as it is meant to") from error
