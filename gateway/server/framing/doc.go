// Package framing keeps requests from an HTTP server whose end two readers could find at
// different places (RFC 9112, sections 5.2, 6.1, 6.3 and 11.2). net/http accepts such heads
// and reads them in one way; a proxy before it may have read them in another, and take a part
// of one request for the next: request smuggling. These are refused, each because net/http
// accepts it:
//
//	Content-Length beside Transfer-Encoding     net/http drops the length
//	Content-Length twice                        net/http takes two equal ones for one
//	Transfer-Encoding before HTTP/1.1           net/http ignores the coding
//	a folded header line                        net/http joins it to the line before
//
// A Content-Length that is no number is refused too. net/http would also refuse it; here the
// number is needed to find the head behind the body.
//
// The listener reads heads beside net/http and changes nothing of a valid one. It replaces
// the line end that completes a fault by bytes that no head can hold, so that net/http
// refuses the request as any other that it cannot read: with a bare 400, and the connection
// ends. Behind a request with Transfer-Encoding no head is looked for: the Server of
// gateway/server closes the connection.
//
// Its connections also write at once what an answer sends as one piece, see Gatherer in internal/sse.
package framing
