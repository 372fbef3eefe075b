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
// every failure in a row. One that nobody used for half an hour is ended, and one with
// a server that is no longer configured (Client.RetainOnly) at once; calls in flight end first. A server
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
// given PATH, HOME and LANG of the environment, its own variables, and nothing else.
// Where another value stands at the place of one, it is followed by a new program. The
// end of its standard error is kept for an operator, who reads it where the program
// ends by itself. It ends with the client: its input is closed, a second later
// its group is asked to end, and a second later killed. A program that says nothing
// while a call waits in vain, and nothing to a ping either, is given up. Lines that
// are too long, or no strict JSON, are the fault of the call whose id they hold; a
// line without one ends the program, as nothing after it can be told apart.
//
// # What an answer means
//
//	a result                 the body, as below
//	isError                  tool_failed; the model is told the tool's words, between
//	                         quotes and up to 2 KiB of them, the operator is not
//	an error of JSON-RPC     tool_failed, alike; the operator is told the code
//	input_required           tool_failed, and what is asked with it, as below
//	a task                   tool_failed: it is not offered to servers
//	not strict JSON, a wrong invalid_result
//	id, a compressed body,
//	content of a kind that
//	the protocol has not
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
// # Progress
//
// Where whoever calls wants to know how far the tool is, each attempt gives the server
// a token of its own that nobody can guess. What the server reports with it before its
// answer, on the stream of that answer or by the one way of a program, is passed on:
// numbers that are finite, each more than the one before over all attempts of the
// call, and 1 KiB of a message. A report with another token, or in another form, is as
// if it had not come, as is what comes behind the first 10,000. Nothing is passed on
// once a call has ended. Reports count against the bytes that an answer may have; no
// call may take longer for them.
//
// # Logs
//
// Where whoever calls wants to know what the tool logs, a server of 2026-07-28 over HTTP
// is told from which level on, by that one request. One of an older revision has a level
// for its session, which others share, and is told none. What either logs on the stream
// of the answer, before it, is passed on: of the level and above, any JSON of 16 KiB, and
// a logger's name of 128 bytes; what has another form, and what comes behind the first
// 1,000, is as if it had not come. They count against the bytes of an answer as reports
// do. A message does not say to which call it belongs, so that none is passed on from
// anywhere else: programs are not asked, and what they log is not looked at.
//
// # Questions
//
// A request to a server of 2026-07-28 says, in its own capabilities, which kinds of
// questions whoever calls can answer (tool.Call.Asks); the session says none, since
// others share it, and a server of an older revision is told none. A server that asks
// has answered the call: it is tool_failed, and not tried again, and tool.InputRequired comes
// with it. It may have 16 questions with names of 1 to 128 bytes, a state of 16 KiB, and
// 32 KiB of both; with a state alone it wants to be called again. A question has a
// method, parameters and nothing else, and is of a kind that was offered; of any other,
// or of none, the call is tool_failed with nothing beside it. What cannot be read is
// invalid_result. What is in a question is judged by who passes it on.
//
// The state, and the answers byte for byte as they were judged, go back behind the
// arguments of a call. Where the server has become one of an older revision, nothing is
// sent, and the call is tool_failed.
//
// # What servers are told, and asked
//
// No other capability is offered. What a server asks by a request of its own is
// refused, but for a ping. That a list of
// tools has changed is told to who started the client, at most once a second for each
// server; it changes nothing by itself. Nothing is granted on a server's word: what it
// says of the effects of its tools is not read.
package mcp
