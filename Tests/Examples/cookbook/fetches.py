"""A thousand pages of the HTTP server on the port of the command line, of which one is large."""
import http.client
import sys
import time

deadline = time.monotonic() + 300
for number in range(1000):
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))  # one that was refused takes no other request
        try:
            connection.request("GET", "/large" if number == 700 else "/small")
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    connection.getresponse().read()
    connection.close()
