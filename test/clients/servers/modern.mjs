// A server of the TypeScript SDK, version 2, over HTTP or, with the argument stdio,
// on standard input and output. HTTP is served to the newest revision alone.
import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod';

function sample() {
  const server = new McpServer({ name: 'modern', version: '1.0.0' });
  server.registerTool('add', {
    title: 'Add', description: 'Adds two numbers.',
    inputSchema: z.object({ a: z.number(), b: z.number() }), outputSchema: z.object({ sum: z.number() }),
  }, ({ a, b }) => ({ content: [{ type: 'text', text: `${a + b}` }], structuredContent: { sum: a + b } }));
  server.registerTool('greet', { inputSchema: z.object({ name: z.string() }) }, ({ name }) => ({ content: [{ type: 'text', text: `Hello, ${name}.` }] }));
  server.registerTool('fail', { inputSchema: z.object({}) }, () => { throw new Error('it is broken'); });
  return server;
}

if (process.argv[2] === 'stdio') {
  serveStdio(sample);
} else {
  const server = createServer(toNodeHandler(createMcpHandler(sample, { legacy: 'reject' })));
  server.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`));
  process.on('SIGTERM', () => process.exit(0));
}
