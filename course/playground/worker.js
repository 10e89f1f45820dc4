// In a worker, after the engine: answers one request after another; files of a request go to the engine's memory and back.
const engine = xgrad_engine();
onmessage = async ({ data: { id, request, put, get } }) => {
  try {
    const e = await engine;
    if (put) e.FS.writeFile(request.path, put);
    const at = e.stringToNewUTF8(JSON.stringify(request));
    if (at === 0) throw new RangeError("it has no memory for the request");
    const answer = JSON.parse(e.UTF8ToString(e._xgrad_call(at)));
    e._free(at);
    postMessage({ id, answer, file: get && !answer.error ? e.FS.readFile(request.path) : undefined });
  } catch (error) {
    postMessage({ id, broken: String(error) });
  }
};
