// Package events delivers messages of a tool beside the result of a call: its progress and
// its logs while it runs (Notifier), and the events of a subscription after it has ended
// (Hub). All of them are bounded, and hidden characters in them are made visible. A slow or
// broken receiver never delays a call or another receiver.
package events

// Event is sent by a tool after the call that subscribed to it has ended. It is for the
// application: no model reads it here.
type Event struct {
	Text string `json:"text"`
	// Associative says that the tool means it for the thread of the call itself.
	Associative bool `json:"associative"`
	Final       bool `json:"final"`
}

const (
	// maxSubscriptions bounds the active subscriptions of one thread, maxActive those of
	// this process and maxActivePerPrincipal those of one principal, which names its own
	// threads.
	maxSubscriptions      = 16
	maxActive             = 1024
	maxActivePerPrincipal = maxActive / 4
	// keptEvents and keptBytes bound the latest events of one subscription that are kept
	// for later followers.
	keptEvents = 16
	keptBytes  = 64 << 10
	// MaxEventBytes bounds the text of an event, in bytes.
	MaxEventBytes = 32 << 10
	// maxBehind is how many events a follower may be behind before it is dropped.
	maxBehind = 64
	// maxDigests is how many of the latest events of one subscription are recognised, and
	// maxDigestLists of how many subscriptions.
	maxDigests     = 64
	maxDigestLists = 2 * maxActive
)
