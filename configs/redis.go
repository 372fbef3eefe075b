package configs

import (
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/ascii"
)

// Redis says where the limits are that replicas share: exactly one of URL,
// Sentinel and Cluster.
type Redis struct {
	// redis:// or rediss://, or env:NAME or file:PATH where it holds a password.
	URL RedisURL `key:"url" example:"env:REDIS_URL"`
	// A master and its sentinels, which may have a username and password of their own.
	Sentinel Sentinel `key:"sentinel" example:"#{master: mymaster, addresses: [sentinel.example.com:26379]}"`
	// Some nodes of a cluster.
	Cluster Cluster `key:"cluster" example:"#{addresses: [redis.example.com:6379]}"`
	// Of Sentinel's master and of the cluster; a password alone is the default user's.
	Username string     `key:"username" of:"a user of Redis" example:"#gateway"`
	Password secret.Ref `key:"password" of:"a password of Redis" example:"#env:REDIS_PASSWORD"`
	// Beside sentinel or cluster; a url says it itself.
	TLS bool `key:"tls" of:"whether Redis is spoken to over TLS" example:"#true"`
	// Trusted certificates (PEM), instead of the system's.
	CAFile string `key:"ca_file" of:"a file of certificates" example:"#ca.pem"`
	CA     string // the content of CAFile
	// Of every key; gateways that share limits have the same.
	Prefix string `key:"prefix" example:"\"callgate:\""`
}

// RedisURL is redis://[user:password@]host:port[/db], or rediss:// for TLS. The
// configuration may contain it only if it holds no password.
type RedisURL struct {
	Plain  string
	Secret secret.Ref
}

// IsSet reports whether there is one.
func (u RedisURL) IsSet() bool { return u.Plain != "" || u.Secret.IsSet() }

// Read returns the current URL.
func (u RedisURL) Read() (string, error) {
	if u.Plain != "" {
		return u.Plain, nil
	}
	return u.Secret.Read()
}

// Sentinel is a master that sentinels watch, with the user of the sentinels.
type Sentinel struct {
	Username  string     `key:"username" of:"a user of the sentinels"`
	Password  secret.Ref `key:"password" of:"a password of the sentinels"`
	Master    string     `key:"master" of:"the name of the master"`
	Addresses []string   `key:"addresses"`
}

// ReadNode reads the keys of redis.sentinel.
func (s *Sentinel) ReadNode(n document.Node, _ string) {
	n.Object(document.Fields(s, document.Field("addresses", func(n document.Node) { readAddresses(n, "sentinels", &s.Addresses) }))...)
	n.Requires("found sentinels without a %s; expected its name and their addresses", "master")
	n.Requires("found a master without its sentinels; expected their %s", "addresses")
	n.Describes(func(s *document.Schema) { s.DependentRequired = map[string][]string{"username": {"password"}} })
	checkPassword(n, "the sentinels")
}

// Cluster is some nodes of one.
type Cluster struct {
	Addresses []string `key:"addresses"`
}

// ReadNode reads the keys of redis.cluster.
func (c *Cluster) ReadNode(n document.Node, _ string) {
	n.Object(document.Fields(c, document.Field("addresses",
		func(n document.Node) { readAddresses(n, "nodes of the cluster", &c.Addresses) }))...)
	n.Requires("found a cluster without nodes; expected the %s of some", "addresses")
}

// ReadNode reads where Redis is.
func (r *Redis) ReadNode(n document.Node, _ string) {
	r.Prefix = "callgate:"
	ok := n.Object(document.Fields(r, document.Field("prefix", func(n document.Node) { readPrefix(n, &r.Prefix) }))...)
	n.Describes(func(s *document.Schema) {
		s.DependentRequired = map[string][]string{"username": {"password"}}
		s.OneOf = []*document.Schema{{Required: []string{"url"}}, {Required: []string{"sentinel"}}, {Required: []string{"cluster"}}}
	})
	if ok {
		checkRedis(n, r)
	}
}

// checkRedis holds the rules between the keys.
func checkRedis(n document.Node, r *Redis) {
	ways := 0
	for _, key := range []string{"url", "sentinel", "cluster"} {
		if n.Has(key) {
			ways++
		}
	}
	if ways != 1 {
		n.Fail("found %d of url, sentinel and cluster; expected one of them", ways)
		return
	}
	if !r.URL.IsSet() {
		checkPassword(n, "Redis")
		if at, _, stated := n.Child("ca_file"); stated && !r.TLS {
			at.Fail("found certificates for a Redis that is spoken to without TLS; expected tls: true beside them")
		}
		return
	}
	if at, _, stated := n.Child("ca_file"); stated && strings.HasPrefix(r.URL.Plain, "redis:") {
		at.Fail("found certificates for a url without TLS; expected one that begins with rediss://")
	}
	for _, key := range []string{"username", "password", "tls"} {
		if at, _, stated := n.Child(key); stated {
			at.Fail("found %s beside url; expected the url to say it itself, as redis://user:password@host:port or rediss://", key)
		}
	}
}

// checkPassword refuses a user without a password: no login would take place, and commands
// would run as the default user.
func checkPassword(n document.Node, of string) {
	if at, _, stated := n.Child("username"); stated && !n.Has("password") {
		at.Fail("found a user of %s without a password; expected the place of one beside it", of)
	}
}

// ReadNode reads a URL, or the place of one. Messages do not show the value found: it
// may hold a password.
func (u *RedisURL) ReadNode(n document.Node, _ string) {
	n.Matching("env:NAME, file:PATH, or redis://host:port[/db] (rediss:// for TLS) without a password",
		`^(env|file):.+$|^rediss?://[^@/?#]+(/[0-9]{0,4})?$`)
	const expected = "expected env:NAME, file:PATH, or redis://host:port[/db] (rediss:// for TLS) without a password"
	if secret.IsPlace(n.Value) {
		secret.Decode(n, "the URL of Redis", &u.Secret)
		return
	}
	at, err := url.Parse(n.Value)
	switch {
	case !n.IsString() || err != nil || at.Scheme != "redis" && at.Scheme != "rediss" || at.Hostname() == "" ||
		!databasePath.MatchString(at.Path) || at.RawQuery != "" || at.Fragment != "":
		n.Fail("found a URL of another form; " + expected)
	case at.User != nil:
		n.Fail("found a URL with a user; " + expected)
	default:
		u.Plain = n.Value
	}
}

// databasePath is the path of a URL: none, or the number of a database.
var databasePath = regexp.MustCompile(`^(/[0-9]{0,4})?$`)

// readAddresses reads a list of host:port, at least one.
func readAddresses(n document.Node, of string, into *[]string) {
	n.List("addresses of "+of, func(_ int, item document.Node) {
		if strings.ContainsAny(item.Value, "@/") { // not shown: it may hold a password
			item.Fail("found a URL, or a user; expected only host:port, of one of the %s", of)
			return
		}
		var a string
		readAddress(item, &a)
		if host, port, err := net.SplitHostPort(a); err == nil && (host == "" || port == "0") {
			item.Fail("found %s; expected the host and the port of one of the %s", item.Describe(), of)
		}
		*into = append(*into, a)
	})
	n.NotEmpty("of the " + of)
}

// readPrefix reads the prefix of keys. Braces would select the key's slot on a cluster, and
// spaces are hard to see.
func readPrefix(n document.Node, into *string) {
	const of = "what the keys in Redis begin with"
	n.Text(of, into)
	n.Matching(of, `^[!-z|~]{1,64}$`)
	if !ascii.IsVisible(*into) || strings.ContainsAny(*into, "{}") || len(*into) > 64 {
		n.Fail(
			"found a prefix of another form; expected at most 64 printable ASCII characters without spaces and braces, such as callgate:")
	}
}
