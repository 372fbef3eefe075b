// A client of the TypeScript SDK, of the version of its first argument (1 or 2), at the
// gateway of its second: the URL of one that serves HTTP, or the program of one that is
// started here, in the root folder, with the rest of the arguments. It lists the tools and
// makes the calls that it reads, one JSON object a line, and prints a line for each.
import { createInterface } from 'node:readline';

const [version, gateway, ...args] = process.argv.slice(2);
const overHTTP = gateway.startsWith('http:');
let client;
let transport;
if (version === '1') {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  client = new Client({ name: 'caller', version: '1.0.0' });
  transport = overHTTP ? new StreamableHTTPClientTransport(new URL(gateway)) : new StdioClientTransport({ command: gateway, args, cwd: '/' });
} else {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  client = new Client({ name: 'caller', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
  transport = new StreamableHTTPClientTransport(new URL(gateway));
}
await client.connect(transport);
const say = (what) => console.log(JSON.stringify(what));

const tools = [];
for (let cursor; ;) {
  const page = await client.listTools(cursor ? { cursor } : undefined);
  tools.push(...page.tools);
  cursor = page.nextCursor;
  if (!cursor) break;
}
say({ tools: tools.map(({ name, outputSchema }) => ({ name, typed: outputSchema !== undefined })) });
for await (const line of createInterface({ input: process.stdin })) {
  const { name, arguments: given } = JSON.parse(line);
  try {
    const r = await client.callTool({ name, arguments: given });
    say({ failed: r.isError === true, text: r.content.map(({ text }) => text ?? '').join('') });
  } catch (e) {
    say({ thrown: e.message });
  }
}
await client.close();
