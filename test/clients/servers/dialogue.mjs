// A server of the TypeScript SDK, version 2, over HTTP, whose tools tell how far they
// are and ask. GET /next lets a tool that has told so go on.
import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler, inputRequired } from '@modelcontextprotocol/server';
import * as z from 'zod';

const text = (said) => ({ content: [{ type: 'text', text: said }] });
const orders = [];
const requests = [];
let next = () => {};

function dialogue() {
  const server = new McpServer({ name: 'dialogue', version: '1.0.0' });
  server.registerTool('steps', { inputSchema: z.object({ count: z.number().int() }) }, async ({ count }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let progress = 1; progress <= count && progressToken !== undefined; progress++) {
      const released = new Promise((resolve) => { next = resolve; });
      await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: count, message: `step ${progress}` } });
      await released;
    }
    return text(`${count} steps${progressToken === undefined ? ', and nobody to tell' : ''}`);
  });
  server.registerTool('order', { inputSchema: z.object({ item: z.string() }) }, ({ item }, ctx) => {
    const answers = ctx.mcpReq.inputResponses;
    requests.push({ item, capabilities: ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'], answers });
    if (ctx.mcpReq.requestState() === `ordering ${item}` && answers?.amount?.action === 'accept') {
      orders.push(`${answers.amount.content.count} of ${item}`);
      return text(`ordered ${orders.at(-1)}`);
    }
    return inputRequired({
      inputRequests: {
        amount: inputRequired.elicit({
          message: `How much ${item}?`,
          requestedSchema: { type: 'object', properties: { count: { type: 'integer', minimum: 1, maximum: 9 } }, required: ['count'] },
        }),
      },
      requestState: `ordering ${item}`,
    });
  });
  // The requests that reached the server of orders, and their results.
  server.registerTool('told', { inputSchema: z.object({}) }, () => text(JSON.stringify({ orders, requests })));
  return server;
}

const answer = toNodeHandler(createMcpHandler(dialogue, { legacy: 'reject' }));
const server = createServer((request, response) => {
  if (request.url !== '/next') return answer(request, response);
  next();
  return response.end();
});
server.listen(0, '127.0.0.1', () => console.log(`listening on 127.0.0.1:${server.address().port}`));
process.on('SIGTERM', () => process.exit(0));
