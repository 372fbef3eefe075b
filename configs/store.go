package configs

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

func (n node) store(into *Store) {
	journals, acknowledged := int64(into.Journals), int64(into.Acknowledged)
	n.object(
		field{"kind", func(n node) { n.choice("where calls are kept", []string{StoreFile, StoreRedis}, &into.Kind) }},
		field{"journals", func(n node) { n.whole("how many gateways share the store", 1, 1000, &journals) }},
		field{"acknowledged", func(n node) {
			n.whole("how many replicas of Redis must have a dispatch", 0, 100, &acknowledged)
		}},
	)
	into.Journals, into.Acknowledged = int(journals), int(acknowledged)
}

// store holds the rules between the keys of the store and the others.
func (l *loader) store(root node, c *Config) {
	_, n, stated := root.child("store")
	switch {
	case !stated:
	case c.Store.Kind == StoreRedis && c.Redis == nil:
		root.at("/store/kind").fail("found store.kind redis without redis; expected the key redis, which says where it is")
	case c.Store.Kind == StoreRedis:
	case n.states("journals"):
		root.at("/store/journals").fail("found journals beside store.kind file, which one gateway has for itself; expected store.kind redis, or no journals")
	case n.states("acknowledged"):
		root.at("/store/acknowledged").fail("found acknowledged beside store.kind file, which has no replicas; expected store.kind redis, or no acknowledged")
	}
}
