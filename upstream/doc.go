// Package upstream is the client of the model. It posts requests of any wire and returns
// the answers undecoded: Post a whole one, Open a stream of events. It reads errors of providers, and lists of models.
//
// # The request
//
// One POST to an Endpoint below base_url with the bytes that it is given, to
// an upstream of a Set. The request carries the upstream's own credential (Authorization
// or another header), Content-Type, Accept, Accept-Encoding: identity and User-Agent. A Request
// may have more headers, but none of those and none of a connection. No proxy of the
// environment is used, no redirect is followed, no cookie kept. TLS is
// required, but for a loopback host or where the upstream allows plain HTTP.
// Without TLS, a request of at most 32 KiB is sent by outbound, which writes it
// and reads the answer on the goroutine of the caller; every other one by net/http.
//
// # Time
//
// Four bounds hold: to connect (name, TCP and TLS), to the first byte of the
// answer's body, between one read of a stream and the next, and for the whole,
// attempts and pauses included. The time that a reader takes between events
// counts towards the whole alone.
//
// # Another attempt
//
// 408, 429, 5xx, and connections that fail before a byte of the answer came,
// are tried again, at most Retries times, after a pause with jitter, or after
// the time of Retry-After. A Retry-After beyond the remaining time, or beyond
// half a minute, is not waited for, and X-Should-Retry: false forbids it. Once a byte of an answer is there,
// nothing is tried again: a completion is never two halves.
//
// # Answers
//
//	200, 201      a whole answer, or a stream of events
//	401, 403, 407 upstream_unavailable: the operator's key is at fault, and
//	              the provider's message is for the operator alone
//	other 4xx     *StatusError, the provider's own words for the caller
//	5xx           *StatusError, the same
//	everything    upstream_unavailable; upstream_timeout where the time ran out
//	else
//
// A StatusError has the body byte for byte, of at most 64 KiB, and the headers about waiting,
// limits and the request's id (AM-62, AM-63); neither where the operator's credential stands in it.
//
// A completion is application/json, a stream text/event-stream; another type that says
// of what form a body is, or a compressed body, which was not requested, is upstream_unavailable. So is
// more than MaxBody, MaxEvent, MaxStream or MaxEvents allow. The bytes of all answers that a client
// holds at a time are bounded as well; an answer beyond that is overloaded.
//
// # Streams
//
// Lines end in LF, CR or CRLF; a byte order mark at the start, comments, id and
// retry are passed over; the data lines of one event are joined by LF (WHATWG
// HTML, section 9.2). The wire knows which event is the last one, and whether a stream may end where its body does, or
// by silence (NextIfAny); [DONE] ends each. Everything else is broken off: a connection that fails, for instance, or a
// body that is shorter than the framing of HTTP says. Data after the last event is looked for as long
// as the connection brings it, and at most for a second. A stream that may end by silence is read until nothing has come
// for a second, and for five at most: signs of life do not keep it open, and what comes later is not read.
package upstream
