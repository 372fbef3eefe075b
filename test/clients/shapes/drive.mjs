// Drives the shapes of one client: each by a function of SHAPES_CLIENT.mjs, with its own address,
// so that the recorder knows whose requests it sees. One line of JSON on standard output for each:
// what the function returned, or the error that the client made of a refusal.
import { readFileSync } from 'node:fs';

const { SHAPES_ADDRESS: address, SHAPES_CLIENT: client, SHAPES_ONLY: only } = process.env;
const table = JSON.parse(readFileSync(new URL('shapes.json', import.meta.url)));
const { default: functions } = await import(`./${client}.mjs`);

// The causes of an error, the error first: some frameworks wrap those of their client.
function* causes(error) {
  for (const seen = new Set(); error && typeof error === 'object' && !seen.has(error); error = error.cause ?? error.lastError) {
    seen.add(error);
    yield error;
  }
}

function refused(error) {
  for (const e of causes(error)) {
    const status = e.status ?? e.statusCode;
    if (!status && !e.code) continue;
    const body = e.data?.error ?? e.error?.error ?? e.error ?? {};
    return { status, code: e.code ?? body.code ?? body.details?.error_code, message: body.message ?? e.message };
  }
  return { fault: String(error?.stack ?? error) };
}

const listed = table.filter((shape) => shape.client === client);
for (const id of Object.keys(functions)) {
  if (!listed.some((shape) => shape.id === id)) throw new Error(`${id} is in ${client}.mjs, and not in shapes.json`);
}
for (const shape of listed) {
  if (only && !shape.id.match(only)) continue;
  let outcome;
  try {
    const root = `${address}/shape/${shape.id}`;
    const value = await functions[shape.id]({ root, baseURL: `${root}/v1`, apiKey: 'unused', model: shape.model ?? 'text' });
    outcome = { value: typeof value === 'string' ? value : JSON.stringify(value) };
  } catch (error) {
    outcome = refused(error);
  }
  console.log(JSON.stringify({ shape: shape.id, ...outcome }));
}
process.exit(0); // a client that keeps connections open does not keep this open
