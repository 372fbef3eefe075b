package configs

import (
	"github.com/callgate/callgate/configs/document"
)

// Store says where calls are kept.
type Store struct {
	Kind string
	// Journals is how many gateways share the store, each with a journal of its own,
	// and Acknowledged how many replicas of Redis must have a dispatch; both are for
	// the kind redis.
	Journals, Acknowledged int
}

// The kinds of Store.
const (
	StoreFile  = "file"
	StoreRedis = "redis"
)

func defaultStore() Store { return Store{Kind: StoreFile, Journals: 1} }

func readStore(n document.Node, into *Store) {
	journals, acknowledged := int64(into.Journals), int64(into.Acknowledged)
	n.Object(
		document.Field("kind", func(n document.Node) { n.Choice("where calls are kept", []string{StoreFile, StoreRedis}, &into.Kind) }),
		document.Field("journals", func(n document.Node) { n.Int("how many gateways share the store", 1, 1000, &journals) }),
		document.Field("acknowledged", func(n document.Node) {
			n.Int("how many replicas of Redis must have a dispatch", 0, 100, &acknowledged)
		}),
	)
	into.Journals, into.Acknowledged = int(journals), int(acknowledged)
}

// checkStore holds the rules between the keys of the store and the others.
func (l *loader) checkStore(root document.Node, c *Config) {
	_, n, stated := root.Child("store")
	switch {
	case !stated:
	case c.Store.Kind == StoreRedis && c.Redis == nil:
		root.At("/store/kind").Fail("found store.kind redis without redis; expected the key redis, which says where it is")
	case c.Store.Kind == StoreRedis:
	case n.Has("journals"):
		root.At("/store/journals").Fail("found journals beside store.kind file, which one gateway has for itself; expected store.kind redis, or no journals")
	case n.Has("acknowledged"):
		root.At("/store/acknowledged").Fail("found acknowledged beside store.kind file, which has no replicas; expected store.kind redis, or no acknowledged")
	}
}
