// The facts that the TypeScript SDK, version 1, finds out about the token that the gateway of the
// first argument asks for: by asking without one, and by looking for the document.
import { discoverOAuthProtectedResourceMetadata, extractWWWAuthenticateParams } from '@modelcontextprotocol/sdk/client/auth.js';

const url = process.argv[2];
const response = await fetch(url, {
  method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  body: '{"jsonrpc":"2.0","id":1,"method":"ping"}',
});
const { resourceMetadataUrl } = extractWWWAuthenticateParams(response);
const reported = await discoverOAuthProtectedResourceMetadata(url, { resourceMetadataUrl });
const found = await discoverOAuthProtectedResourceMetadata(url);
console.log(JSON.stringify({ status: response.status, at: resourceMetadataUrl.href, reported, found }));
