// Package history keeps what conditions of a policy may ask about the past of a thread and of a caller:
// the labels of a thread, and the values of the terms that the policy names. It keeps no list of events, so
// that its memory is bounded by the policy and not by the traffic.
//
// # Contract
//
// A Term is what a condition asks; Terms are those of a configuration. Adds are what one call, or its result, adds. A
// State is what is kept of one thread, or of one caller: it is never changed, Apply returns another one. A Keeping says
// since when terms are kept. A View answers the terms for one call, which counts itself. What cannot be known is
// ErrUnknown, never zero.
//
// A thread begins with the first call that adds something to it, a caller likewise. A term that was not kept without a
// gap since then is unknown there; with a window, only until the window has passed once.
//
// # Turns
//
// Each change of a State is a turn, whose number is in the record of the audit log that says what it added or took away.
// Fold applies such a record to a State that does not have its turn, so that the records of a State may come in any
// order, and more than once.
//
// The package has no I/O and no clock.
package history
