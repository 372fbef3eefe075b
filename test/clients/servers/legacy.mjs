// A server of the TypeScript SDK, version 1, with sessions over HTTP or, with the
// argument stdio, on standard input and output.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import * as z from 'zod';

function sample() {
  const server = new McpServer({ name: 'legacy', version: '1.0.0' });
  server.registerTool('add', {
    title: 'Add', description: 'Adds two numbers.',
    inputSchema: { a: z.number(), b: z.number() }, outputSchema: { sum: z.number() },
  }, ({ a, b }) => ({ content: [{ type: 'text', text: `${a + b}` }], structuredContent: { sum: a + b } }));
  server.registerTool('greet', { inputSchema: { name: z.string() } }, ({ name }) => ({ content: [{ type: 'text', text: `Hello, ${name}.` }] }));
  server.registerTool('fail', { inputSchema: {} }, () => { throw new Error('it is broken'); });
  return server;
}

if (process.argv[2] === 'stdio') {
  await sample().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const server = createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (!transport) {
      if (id) return response.writeHead(404).end();
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (made) => sessions.set(made, transport),
        onsessionclosed: (ended) => sessions.delete(ended),
      });
      await sample().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  server.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`));
  process.on('SIGTERM', () => process.exit(0));
}
