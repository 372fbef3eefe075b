// A client of the TypeScript SDK, version 2, that orders tea and takes two steps at the
// gateway of its first argument, and lets the server of its second go on after each. It
// prints what it hears, a line of JSON each. The third argument says how it agrees on a
// revision: auto takes the newest, legacy the ones before it.
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

const [gateway, server, mode] = process.argv.slice(2);
const say = (what) => console.log(JSON.stringify(what));

const client = new Client({ name: 'caller', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } });
client.setRequestHandler('elicitation/create', ({ params }) => {
  say({ asked: params.message });
  return { action: 'accept', content: { count: 3 } };
});
await client.connect(new StreamableHTTPClientTransport(new URL(gateway)));
say({ revision: client.getNegotiatedProtocolVersion() });

const order = await client.callTool({ name: 'shop_order', arguments: { item: 'tea' } });
say({ said: order.content[0].text });
const steps = await client.callTool({ name: 'shop_steps', arguments: { count: 2 } }, {
  onprogress: ({ progress, total, message }) => {
    say({ progress, total, message });
    fetch(`${server}/next`);
  },
});
say({ said: steps.content[0].text });
await client.close();
