package redisconn

import "github.com/redis/go-redis/v9"

// Client is the client of a connection to one node, and Cluster that of a cluster.
func (c *Conn) Client() *redis.Client         { return c.client.(single).client }
func (c *Conn) Cluster() *redis.ClusterClient { return c.client.(cluster).client }
