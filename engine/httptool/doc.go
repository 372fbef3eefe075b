// Package httptool runs tools of the type http: one POST of the argument bytes, as
// application/json, to the tool's URL; or, if the tool states a method, a request of
// that method in which each argument has its place.
//
// # Requests with places
//
// In a path or a query every byte of a value but the unreserved characters of RFC 3986
// is escaped, so that the number of segments and of query members is that of the
// template. A path takes no empty value, no control characters, and no . or .. between
// slashes or backslashes, escaped or not. A header takes visible ASCII, with spaces and
// tabs inside. Numbers are sent as they were written, lists in a query as one member
// for each item or joined by commas, null as nothing, and a body byte by byte. An
// argument that does not fit is tool_failed, and nothing is sent. An argument without a
// place, or a place without an argument in braces, is tool_unavailable.
//
// Requests carry only Content-Type, Accept, Accept-Encoding, User-Agent,
// Callgate-Call-Id, for idempotent tools Idempotency-Key, the header of the tool's
// credential, and the headers that the tool's parameters name. A parameter of the name of
// the credential's header is refused, and nothing is sent.
package httptool
