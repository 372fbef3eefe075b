// Package notices tells an endpoint of the operator when people are asked to approve a call,
// when they have decided, and when an approval ends. A notice is a message of Standard Webhooks
// 1.0.0 with few facts: its receiver verifies the signature, and asks the admin API for the rest.
// The answer of the endpoint is never a vote: nothing but the status is read.
//
// # At least once
//
// Each state of an approval is told of once it is durable, in the order in which an approval
// comes to them. The id of a notice is that of the approval and the state: it is the same
// whenever the notice is sent again, so that a receiver can pass over what it has had. The store
// keeps what was acknowledged (store.Notices); a process that starts tells of the rest. Of the
// gateways that share a store one claims a notice at a time.
//
//	status 2xx     acknowledged
//	status 410     the endpoint wants no more: nothing is sent until it is configured anew
//	anything else  sent again, after 5 s, 30 s, 3 min, 18 min, and then every 30 min
//
// While an approval can still be used all its states are sent. After that, its end is, to a
// receiver that has acknowledged an earlier state, for as long as the approval is kept.
//
// # Bounds
//
// A Sender has a few requests at a time, each with a deadline, in goroutines of its own. Notices
// that wait to be sent are in the store. Nobody waits for a notice: no call, no reload, and shutting
// down only for a second.
package notices
