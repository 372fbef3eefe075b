// Package mcp is a client of servers that speak the Model Context Protocol, over
// Streamable HTTP or the standard input and output of a program. It lists their tools
// and calls them, in the revisions 2026-07-28 and 2025-11-25.
//
// # Why there is no SDK
//
// Messages of a server are read strictly and within bounds, and kept as the bytes they came in,
// so that schemas and numbers stay as they were written. The official SDK follows what a
// server says of retries, ends the session of all calls for a
// fault in one response, and reads a program's output with a decoder that takes the last of
// two equal members. Without its transports, what is left of it is the handshake: the
// revision is the newest if server/discover says so, and otherwise one of the older ones,
// which initialize agrees on.
//
// # Endpoints and sessions
//
// Calls with the same server, URL or command, credential and addresses share one
// session, for any caller. State that a server of the older revisions keeps for
// a session is shared with it. A session is opened when it is first needed, and again
// after it has ended, with a pause that grows from 200 ms to 5 s with every failure in a
// row. A session that was not used for half an hour is closed, and one with a server
// that is no longer configured (Client.RetainOnly) at once; calls in flight end first. A
// server that may have forgotten a session is pinged first, if it was quiet for 30 s.
//
// # Requests
//
// Requests leave by outbound: its address policy applies, they use no proxy and no
// cookies, and redirects are not followed. They carry the server's own credential, which
// is read as they are sent, and nothing of the caller's. A once call is written once, but for a forgotten session.
// A server of the older revisions may end a stream before the response: if an event of it had an id, the rest is asked
// for by GET, within the time of the call. The arguments stand in a request byte for byte as they were
// validated; to a program, which reads lines, a line break between tokens is a space. Arguments that the schema marks with x-mcp-header are
// repeated in headers if the server is of 2026-07-28. The marks are those of its list of
// tools, which is read when the session begins and at every discovery.
//
// # Programs
//
// A program is started once for each endpoint, in a process group of its own. It gets
// PATH, HOME and LANG of the environment, its own variables, and nothing else. If the
// secret of a variable has changed, a new program is started. The end of its standard
// error is kept for the operator, who reads it if the program ends by itself. The
// program ends with the client: its input is closed, a second later its group gets
// SIGTERM, and a second later SIGKILL. A program that ends before it has a session is
// started once more, with initialize as its first request, because servers of the older
// revisions may end on any other; if that works, its later starts are alike. A program
// that writes nothing in the whole time of a call may be at work, and does one thing at a time; if it writes
// nothing in that of a later call either, and nothing after a ping, it is ended. A line
// that is too long (up to 128 MiB, which are not kept) or no strict JSON fails the call whose id it holds beside a
// member "jsonrpc". An error without
// an id is the answer to the request that begins the session, and later to none. A line
// that does not begin as a message, with a member "jsonrpc" of its own, is passed over, up to 1,000 of them or 1 MiB on
// end. Any other line ends the program, because nothing after it can be told apart, and the
// operator is shown its beginning. The last line needs no end. The log says why a program has ended that had a session.
//
// # Responses
//
//	a result                 the body, as below
//	isError                  tool_failed; the model is told the tool's words, between
//	                         quotes and up to 2 KiB of them, the operator is not
//	an error of JSON-RPC     tool_failed, alike; the operator is told the code
//	input_required           tool_failed, and what is asked with it, as below
//	a task                   tool_failed: it is not offered to servers
//	not strict JSON, another invalid_result (on a stream, the response
//	id, a compressed body,   to another request is passed over)
//	content of a kind that
//	the protocol has not
//	too large                result_too_large; on the wire an answer may have four
//	                         times what its result may have, and 64 KiB
//	no session               tool_unavailable, address_blocked or tool_timeout, for
//	                         once calls too: nothing of the call was sent
//	a forgotten session      as below
//
// A member that is null is absent, a result may be structured content alone, and an id may be
// repeated as text. Of an error, the code and the words are read where they can be.
//
// Servers say in many ways that they have no such session: by any status, by any error, or in
// no form at all, and tools say the same of other things. After such a response to a call or to
// the request of a list, and after 30 quiet seconds, the server is pinged. One that answers
// the ping by a status or an error other than "method not found" has forgotten the session,
// and another begins; what is in flight in the one before ends first. A once call is sent
// again, as a second attempt, only if the response was a status of 4xx that did not have its
// id, and the server takes a ping in the new session: it has not come to the call. Otherwise
// it is tool_failed by an error that has its id, and else outcome_unknown.
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
// # Progress
//
// If the caller wants progress reports, each attempt gives the server a new token that
// nobody can guess. Reports with that token which come before the response, on its
// stream or on the output of a program, are passed on: finite numbers, each greater than
// the one before over all attempts of the call, and 1 KiB of a message. Reports with
// another token, in another form, or after the first 10,000 are dropped. Nothing is
// passed on after a call has ended. Reports count against the bytes that a response may
// have, and extend no timeout.
//
// # Logs
//
// If the caller wants logs, a server of 2026-07-28 over HTTP gets the level in that one
// request. A server of an older revision has one level for its session, which others
// share, and gets none. Logs of either on the stream of the response, before it, are
// passed on: of the level and above, any JSON of 16 KiB, and a logger's name of 128
// bytes; other forms, and what comes after the first 1,000, are dropped. Logs count
// against the bytes of a response as reports do. A log message does not say to which
// call it belongs, so none is passed on from anywhere else: programs are not asked for
// logs, and their logs are ignored.
//
// # Input that a tool requires
//
// A request to a server of 2026-07-28 says in its capabilities which kinds of questions
// its caller can answer (tool.Call.Asks). The session offers none, because others share
// it, and a server of an older revision gets none. A server that asks has answered the
// call: it is tool_failed, is not retried, and comes with a tool.InputRequired. It may
// have 16 questions with names of 1 to 128 bytes, a state of 16 KiB, and 32 KiB of both;
// a state alone asks to be called again. A question has a method, parameters and nothing
// else, and is of a kind that was offered; otherwise the call is tool_failed, without a
// tool.InputRequired. A question that cannot be read is invalid_result. Its content is
// validated by the gateway.
//
// The state, and the answers byte for byte as they were validated, follow the arguments
// of a call. If the server has become one of an older revision, nothing is sent, and the
// call is tool_failed.
//
// # Requests of servers
//
// No other capability is offered. A request of a server is refused, unless it is a ping.
// Changed lists of tools are reported to Options.ToolsChanged, at most once a second for
// each server, and change nothing by themselves. So is, as announced, the first call in a session in which no list was
// discovered, and, as not announced, a stream of such reports that had broken off. Annotations of tools are not read,
// because nothing is granted on a server's word.
package mcp
