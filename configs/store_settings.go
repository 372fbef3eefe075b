package configs

import (
	"github.com/callgate/callgate/configs/document"
)

// Store says where calls are kept.
type Store struct {
	// file: in data_dir, for this gateway alone. redis: on the Redis below, for several gateways,
	// which put back from their audit logs what it loses.
	Kind string `key:"kind" of:"where calls are kept" words:"file redis"`
	// How many gateways share the store; with redis.
	Replicas int `key:"replicas" of:"how many gateways share the store" range:"1..1000" example:"2"`
	// How many replicas of Redis must have a call before its tool is called; with redis.
	MinRedisReplicas int `key:"min_redis_replicas" of:"how many replicas of Redis must have a dispatch" range:"0..100" example:"1"`
}

// The kinds of Store.
const (
	StoreFile  = "file"
	StoreRedis = "redis"
)

func defaultStore() Store { return Store{Kind: StoreFile, Replicas: 1} }

// checkStore holds the rules between the keys of the store and the others.
func (l *loader) checkStore(root document.Node, c *Config) {
	_, n, stated := root.Child("store")
	switch {
	case !stated:
	case c.Store.Kind == StoreRedis && c.Redis == nil:
		root.At("/store/kind").Fail("found store.kind redis without redis; expected the key redis, which says where it is")
	case c.Store.Kind == StoreRedis:
	case n.Has("replicas"):
		root.At("/store/replicas").Fail(
			"found replicas beside store.kind file, which one gateway has for itself; expected store.kind redis, or no replicas")
	case n.Has("min_redis_replicas"):
		root.At("/store/min_redis_replicas").Fail(
			"found min_redis_replicas beside store.kind file, which is not on Redis; expected store.kind redis, or no min_redis_replicas")
	}
}
