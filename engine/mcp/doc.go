// Package mcp runs tools of servers that speak the Model Context Protocol, over
// Streamable HTTP or the standard input and output of a program, and lists them.
// It is a client of the revisions 2026-07-28 and 2025-11-25; the official SDK agrees
// with a server on one, and sends the requests.
//
// # What is the SDK's, and what is not
//
// The SDK is given a connection of this package. It sees the answers to its own
// greeting, and of every other answer no more than that it came: what a server says
// is read here, strictly and within bounds, and kept as the bytes it came in, so that
// schemas and numbers stay as they were written. The SDK's own transports are not
// used: they follow what a server says of retries and of streams to be resumed, end
// the session of all calls for a fault in one answer, and read what a program writes
// with a decoder that takes the last of two members.
//
// # Places and sessions
//
// Calls with the same server, URL or command, credential and addresses share one
// session, whoever asks. A server of the older revisions that keeps something for a
// session keeps it for all of them. A session is opened when it is first needed; one
// that has ended is opened anew, after a rest that grows from 200 ms to 5 s with
// every failure in a row. One that nobody used for half an hour is ended. A server
// that may have forgotten a session is asked by a ping first, where it was quiet for
// 30 s.
//
// # Requests
//
// Requests go where those of the engine may go, and as they do: through its guard, by
// no proxy, with no cookie, and no redirect is followed. They carry the server's own
// credential, read as they are sent, and nothing of the caller's. A once call is
// written to one fresh connection once; no stream is resumed. The arguments stand in
// a request byte for byte as they were judged; to a program, which reads lines, an
// end of a line among them is a space. Arguments that the
// schema marks with x-mcp-header are repeated in headers, where the server is a
// modern one. The marks are those of its list of tools, which is read when the
// session begins and at every discovery.
//
// # Programs
//
// A program is started once for each place, in a group of processes of its own. It is
// given PATH, HOME and LANG of the environment, and nothing else of it. Its standard
// error goes nowhere. It ends with the client: its input is closed, a second later
// its group is asked to end, and a second later killed. A program that says nothing
// while a call waits in vain, and nothing to a ping either, is given up. Lines that
// are too long, or no strict JSON, are the fault of the call whose id they hold; a
// line without one ends the program, as nothing after it can be told apart.
//
// # What an answer means
//
//	a result                 the body, as below
//	isError                  tool_failed; the model is told the tool's words, up to
//	                         2 KiB of them, the operator is not
//	an error of JSON-RPC     tool_failed, alike; the operator is told the code
//	input_required, a task   tool_failed: nothing of it is offered to servers
//	not strict JSON, a wrong invalid_result
//	id, a compressed body
//	too large                result_too_large; on the wire an answer may have four
//	                         times what its result may have, and 64 KiB
//	no session               tool_unavailable, address_blocked or tool_timeout, for
//	                         once calls too: nothing of the call was sent
//	a forgotten session      tool_unavailable: the server has not taken the call
//
// Everything else is as the engine says it of http: HTTP statuses, connections that
// break off, and what goes unanswered, of which a once call is outcome_unknown; the
// attempts of other calls; and the breakers.
//
// The body is the structured content, where all else is text, or where the tool has a
// schema of results, which is a schema of that; the text, where one block of it is all
// there is; and otherwise an object of content, with the blocks as the server wrote
// them, and structuredContent, where it is there.
//
// # What servers are told, and asked
//
// No capability is offered. What a server asks is refused, but for a ping. Logging
// and progress are not asked for, and not looked at. That a list of tools has changed
// is told to who started the client, at most once a second for each server; it
// changes nothing by itself. Nothing is granted on a server's word: what it says of
// the effects of its tools is not read.
package mcp
