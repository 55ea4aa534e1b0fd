// The simulator in a thread of its own. It is asked {id, method, query} and answers {id, ok} or {id, faults}, and on the
// way {id, progress: [done, total]}.
"use strict";

importScripts("wasm_exec.js");

// load runs the program. Servers that know what .gz is unpack it on the way, others do not.
async function load() {
  const response = await fetch("clifftop.wasm.gz");
  if (!response.ok) throw new Error(`clifftop.wasm.gz: ${response.status} ${response.statusText}`);
  const bytes = await response.arrayBuffer();
  const magic = new Uint8Array(bytes, 0, 2);
  let stream = new Blob([bytes]).stream();
  if (magic[0] === 0x1f && magic[1] === 0x8b) stream = stream.pipeThrough(new DecompressionStream("gzip"));
  const go = new Go();
  const { instance } = await WebAssembly.instantiateStreaming(
    new Response(stream, { headers: { "Content-Type": "application/wasm" } }), go.importObject);
  go.run(instance); // sets clifftop, and waits to be called
}

const ready = load();

self.onmessage = async ({ data: { id, method, query } }) => {
  try {
    await ready;
    const progress = (done, total) => self.postMessage({ id, progress: [done, total] });
    const start = performance.now();
    const answer = JSON.parse(self.clifftop(method, JSON.stringify(query), progress));
    self.postMessage({ id, ms: performance.now() - start, ...answer });
  } catch (e) {
    self.postMessage({ id, broken: String(e && e.message || e) });
  }
};
