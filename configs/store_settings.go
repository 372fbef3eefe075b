package configs

import (
	"github.com/callgate/callgate/configs/document"
)

// Store says where calls are kept.
type Store struct {
	Kind string
	// Replicas is the number of gateways that share the store, each with its own journal,
	// and MinRedisReplicas the number of Redis replicas that must have a dispatch; both are
	// for the kind redis.
	Replicas, MinRedisReplicas int
}

// The kinds of Store.
const (
	StoreFile  = "file"
	StoreRedis = "redis"
)

func defaultStore() Store { return Store{Kind: StoreFile, Replicas: 1} }

func readStore(n document.Node, into *Store) {
	n.Object(
		document.Choice("kind", "where calls are kept", &into.Kind, StoreFile, StoreRedis),
		document.Int("replicas", "how many gateways share the store", 1, 1000, &into.Replicas),
		document.Int("min_redis_replicas", "how many replicas of Redis must have a dispatch", 0, 100, &into.MinRedisReplicas),
	)
}

// checkStore holds the rules between the keys of the store and the others.
func (l *loader) checkStore(root document.Node, c *Config) {
	_, n, stated := root.Child("store")
	switch {
	case !stated:
	case c.Store.Kind == StoreRedis && c.Redis == nil:
		root.At("/store/kind").Fail("found store.kind redis without redis; expected the key redis, which says where it is")
	case c.Store.Kind == StoreRedis:
	case n.Has("replicas"):
		root.At("/store/replicas").Fail("found replicas beside store.kind file, which one gateway has for itself; expected store.kind redis, or no replicas")
	case n.Has("min_redis_replicas"):
		root.At("/store/min_redis_replicas").Fail("found min_redis_replicas beside store.kind file, which is not on Redis; expected store.kind redis, or no min_redis_replicas")
	}
}
