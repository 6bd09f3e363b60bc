"""A thousand requests to the Redis server on the port of the command line, of which one takes 50 ms; then the server ends."""
import socket
import sys
import time

deadline = time.monotonic() + 300
while True:
    try:
        connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        break
    except ConnectionRefusedError:
        if time.monotonic() > deadline:
            raise
        time.sleep(0.05)
with connection:
    for number in range(1000):
        request = "DEBUG SLEEP 0.05" if number == 700 else f"SET key{number % 50} value{number}"
        connection.sendall(request.encode() + b"\r\n")
        connection.recv(100)
    connection.sendall(b"SHUTDOWN NOSAVE\r\n")
