"""Subscribes to KV events with libzmq, and follows them as routers do.

usage: subscriber.py PORTS REPLAY_PORTS, each with commas. It prints "ready" when it listens. Then it reads a JSON list
with the number of batches of each replica, and prints for each the blocks that it knows and those of a replay.
"""
import json
import struct
import sys

import msgpack
import zmq

LATE = 20_000  # milliseconds


def to_hash(raw):
    """Like llm-d: an integer, or the last eight bytes."""
    return raw if isinstance(raw, int) else int.from_bytes(raw[-8:], "big")


def fields(event):
    """The kind of an event and its fields, from a map or, like Dynamo, from a tagged sequence."""
    if isinstance(event, dict):
        return event["type"], event
    names = {
        "BlockStored": ["block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name"],
        "BlockRemoved": ["block_hashes", "medium"],
        "AllBlocksCleared": [],
    }[event[0]]
    return event[0], dict(zip(names, event[1:]))


class Index:
    """The blocks of a replica: for each hash the hash of all tokens up to the block's end, as a router has it."""

    def __init__(self):
        self.blocks, self.next, self.lost_parents = {}, 0, 0

    def apply(self, sequence, payload):
        (number,) = struct.unpack(">Q", sequence)
        assert number == self.next, (number, self.next)
        self.next += 1
        _, events, rank = msgpack.unpackb(payload)
        assert rank == 0
        for event in events:
            kind, f = fields(event)
            if kind == "AllBlocksCleared":
                self.blocks.clear()
            elif kind == "BlockRemoved":
                for raw in f["block_hashes"]:
                    del self.blocks[to_hash(raw)]
            else:
                self.store(f)

    def store(self, f):
        before = 0
        if f["parent_block_hash"] is not None:
            parent = self.blocks.get(to_hash(f["parent_block_hash"]))
            if parent is None:
                self.lost_parents += 1
            before = parent or 1
        size = f["block_size"]
        assert len(f["token_ids"]) == size * len(f["block_hashes"]) and f["medium"] == "GPU"
        for k, raw in enumerate(f["block_hashes"]):
            for token in f["token_ids"][k * size:(k + 1) * size]:
                before = ((before ^ token) * 0x9E3779B97F4A7C15) & (2**64 - 1)
                before ^= before >> 29
            assert to_hash(raw) not in self.blocks
            self.blocks[to_hash(raw)] = before


def receive(socket):
    assert socket.poll(LATE), "timeout"
    return socket.recv_multipart()


def main():
    ports, replay_ports = ([int(p) for p in arg.split(",")] for arg in sys.argv[1:3])
    context = zmq.Context()
    subscribers = []
    for port in ports:
        s = context.socket(zmq.SUB)
        s.setsockopt(zmq.SUBSCRIBE, b"kv@")
        s.connect(f"tcp://127.0.0.1:{port}")
        subscribers.append(s)
    print("ready", flush=True)
    result = []
    for i, batches in enumerate(json.loads(sys.stdin.readline())):
        live = Index()
        while live.next < batches:
            topic, sequence, payload = receive(subscribers[i])
            assert topic == f"kv@{i}@m".encode(), topic
            live.apply(sequence, payload)
        again = Index()
        dealer = context.socket(zmq.DEALER)
        dealer.connect(f"tcp://127.0.0.1:{replay_ports[i]}")
        dealer.send_multipart([b"", (0).to_bytes(8, "big")])
        while True:
            empty, sequence, payload = receive(dealer)
            if not payload:
                assert empty == b"" and sequence == b"\xff" * 8
                break
            again.apply(sequence, payload)
        request = context.socket(zmq.REQ)  # vLLM's example asks with REQ, which gets one reply
        request.connect(f"tcp://127.0.0.1:{replay_ports[i]}")
        request.send((1).to_bytes(8, "big"))
        assert receive(request)[0] == (1).to_bytes(8, "big")
        assert live.blocks == again.blocks and again.next == batches
        result.append({"blocks": [[str(k), str(v)] for k, v in live.blocks.items()], "lost_parents": live.lost_parents})
    print(json.dumps(result), flush=True)
    context.destroy(linger=0)


main()
