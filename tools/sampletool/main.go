// Command sampletool is a small HTTP tool server for the quick start and for
// tests: what a gateway calls when a call was allowed, and what counts how often
// it was called.
//
// # Endpoints
//
//	POST /search  {"query", "limit"?}  -> {"results": [{"path", "line", "snippet"}], "incomplete"?}
//	POST /read    {"path", "lines"?}   -> {"path", "first", "last", "of", "text"}
//	POST /time    {}                   -> {"utc", "unix"}
//	POST /slow    {"seconds"}          -> {"waited"}, after that time; nothing if the client leaves
//	POST /fail    {"status"?}          -> that status, 500 if absent
//	POST /echo    any object           -> {"echo": its bytes}
//	POST /later   an invocation        -> {}, and the answer by calling back
//	GET  /hits                         -> {"total", "paths", "calls": [{"id", "path", "count"}], "forgotten"}
//	GET  /healthz                      -> {"ok": true}
//
// A body is one JSON object of at most 1 MiB, sent as application/json. It is
// read strictly: an unknown, missing, repeated or null member, a wrong type and
// anything after the object are refused with 400. Every refusal is
// {"error": "what was found; what was expected"}.
//
// # Calling back
//
// /later is a tool of the callback protocol: it acknowledges a call, and posts its
// answer to the callback_url that came with it. How, the flag --later says, or the
// argument "as" of one call: once, several times, after forgeries, too late, when
// POST /later/release says so, never, or in other modes. GET
// /.well-known/rap-toolset describes it, and GET /later/report counts what was
// posted and how that was answered. /cancel_tool_call and /close_thread are always
// taken.
//
// # Hits
//
// A request is a hit when it arrives, before it is judged or acted on, whatever
// it is answered. Only /hits and /healthz are not counted. A hit that cannot be
// written to the file of --hits is refused with 503 and not acted on.
//
// The server has no authentication. It is meant for a loopback address or for a
// network of containers.
package main

import "github.com/callgate/callgate/tools/internal/sample"

func main() { sample.Main(run) }
