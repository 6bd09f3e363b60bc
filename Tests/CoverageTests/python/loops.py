import asyncio


async def served(reader, writer):
    writer.write((await reader.readline()).upper())
    await writer.drain()
    writer.close()


async def asked(port, word):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(word + b"\n")
    answer = await reader.read()
    writer.close()
    return answer


async def main():
    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        print(await asyncio.gather(*(asked(port, word) for word in (b"one", b"two"))))
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        except asyncio.TimeoutError:
            print("waited")


asyncio.run(main())
