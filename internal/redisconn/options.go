// Package redisconn connects to Redis: the options of the connection, the client with its
// timeouts, and the checks before a connection is used. The Redis stores of calls and of
// limits share it.
//
//   - A client never repeats a command by itself: the caller decides whether a
//     command may run twice. It follows no redirection of a cluster.
//   - A new connection to an instance that was not found before (a restart, a
//     failover) is refused: see Conn.
//   - Replies are bounded: see Bound.
//   - No error holds a password.
package redisconn

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"

	"github.com/redis/go-redis/v9"
)

// DefaultPrefix begins every key where Options name no prefix.
const DefaultPrefix = "callgate:"

// Options say where Redis is; exactly one of URL, Sentinel and Cluster.
// Secrets are behind functions, so that no print of the options shows them;
// each is called when a client is made.
type Options struct {
	// URL returns redis://[user:password@]host:port[/db], or rediss:// for TLS.
	URL func() string
	// Sentinel names the master that sentinels watch.
	Sentinel Sentinel
	// Cluster lists some nodes of a cluster, host:port.
	Cluster []string
	// Credentials are for Sentinel's master and Cluster; nil: none.
	Credentials func() (user, password string)
	// TLS is for Sentinel and Cluster; nil: no TLS. With a URL, the scheme decides about
	// TLS, and only its RootCAs are used.
	TLS *tls.Config
	// Prefix begins every key; "" is DefaultPrefix. Gateways that share state
	// use the same prefix.
	Prefix string
}

// Sentinel is a master watched by sentinels, host:port each.
type Sentinel struct {
	Master      string
	Addresses   []string
	Credentials func() (user, password string) // of the sentinels; nil: none
}

// Validate reports what is wrong with the options. No error holds a secret.
func (o *Options) Validate() error {
	ways := 0
	for _, given := range []bool{o.URL != nil, o.Sentinel.Master != "" || len(o.Sentinel.Addresses) > 0, len(o.Cluster) > 0} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return fmt.Errorf("found %d of url, sentinel and cluster, expected one", ways)
	case o.URL == nil && len(o.Cluster) == 0 && (o.Sentinel.Master == "" || len(o.Sentinel.Addresses) == 0):
		return errors.New("found a sentinel without a master's name or without addresses, expected both")
	case o.URL != nil:
		_, err := parseURL(o.URL())
		return err
	}
	return nil
}

// KeyPrefix is the prefix of all keys.
func (o *Options) KeyPrefix() string {
	if o.Prefix == "" {
		return DefaultPrefix
	}
	return o.Prefix
}

// parseURL reads a URL. Its errors quote nothing of the URL, which may hold a password. A
// query is refused, since its options could enable retries.
func parseURL(text string) (*redis.Options, error) {
	const expected = "found a url of another form, expected redis://[user:password@]host:port[/db] or rediss://…, without options"
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.RawQuery != "" || u.Fragment != "" || u.Host == "" {
		return nil, errors.New(expected)
	}
	parsed, err := redis.ParseURL(text)
	if err != nil {
		return nil, errors.New(expected)
	}
	return parsed, nil
}

func login(credentials func() (string, string)) (user, password string) {
	if credentials == nil {
		return "", ""
	}
	return credentials()
}
