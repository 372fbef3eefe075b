// Package callback is a client of servers whose tools accept a call and answer it later
// by calling back. An accepted call is pending. A call that may have been accepted is
// pending too, because its tool may still answer. The meaning of an answer is the gateway's
// concern.
package callback
