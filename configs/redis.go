package configs

import (
	"net"
	"net/url"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Redis says where the limits are that replicas share: exactly one of URL,
// Sentinel and Cluster.
type Redis struct {
	URL         RedisURL
	Sentinel    Sentinel
	Cluster     []string    // some of its nodes, host:port
	Credentials Credentials // of Sentinel's master and of Cluster
	TLS         bool        // of Sentinel and Cluster; a URL says it itself
	// CAFile names certificates in PEM that are believed instead of the system's;
	// CA is what it holds.
	CAFile, CA string
	// Prefix begins every key; gateways that share limits have the same.
	Prefix string
}

// RedisURL is redis://[user:password@]host:port[/db], or rediss:// for TLS. It
// stands in the configuration only where it holds no password.
type RedisURL struct {
	Plain  string
	Secret Secret
}

// IsSet tells whether there is one.
func (u RedisURL) IsSet() bool { return u.Plain != "" || u.Secret.IsSet() }

// Read returns the URL as it stands now.
func (u RedisURL) Read() (string, error) {
	if u.Plain != "" {
		return u.Plain, nil
	}
	return u.Secret.Read()
}

// Sentinel is a master that sentinels watch.
type Sentinel struct {
	Master      string
	Addresses   []string
	Credentials Credentials // of the sentinels
}

// Credentials is a user and where its password stands. Both may be absent; a password
// alone is the default user's.
type Credentials struct {
	Username string
	Password Secret
}

const defaultPrefix = "callgate:"

// redis reads where Redis is.
func (n node) redis() *Redis {
	r := &Redis{Prefix: defaultPrefix}
	before := len(n.report.faults)
	n.object(
		field{"url", func(n node) { n.redisURL(&r.URL) }},
		field{"sentinel", func(n node) {
			s := &r.Sentinel
			n.object(append(n.login(&s.Credentials),
				field{"master", func(n node) { n.text("the name of the master", &s.Master) }},
				field{"addresses", func(n node) { n.addresses("sentinels", &s.Addresses) }},
			)...)
			if n.Kind == yaml.MappingNode && !n.states("master") {
				n.fail("found sentinels without a master; expected its name and their addresses")
			}
			if n.Kind == yaml.MappingNode && !n.states("addresses") {
				n.fail("found a master without its sentinels; expected their addresses")
			}
			n.wholeLogin("the sentinels")
		}},
		field{"cluster", func(n node) {
			n.object(field{"addresses", func(n node) { n.addresses("nodes of the cluster", &r.Cluster) }})
			if n.Kind == yaml.MappingNode && !n.states("addresses") {
				n.fail("found a cluster without nodes; expected the addresses of some")
			}
		}},
		field{"username", func(n node) { n.text("a user of Redis", &r.Credentials.Username) }},
		field{"password", func(n node) { n.secret("a password of Redis", &r.Credentials.Password) }},
		field{"tls", func(n node) { n.flag("whether Redis is spoken to over TLS", &r.TLS) }},
		field{"ca_file", func(n node) { n.text("a file of certificates", &r.CAFile) }},
		field{"prefix", func(n node) { n.prefix(&r.Prefix) }},
	)
	if len(n.report.faults) > before {
		return r
	}
	n.oneRedis(r)
	return r
}

// oneRedis holds the rules between the keys.
func (n node) oneRedis(r *Redis) {
	ways := 0
	for _, key := range []string{"url", "sentinel", "cluster"} {
		if n.states(key) {
			ways++
		}
	}
	if ways != 1 {
		n.fail("found %d of url, sentinel and cluster; expected one of them", ways)
		return
	}
	if !r.URL.IsSet() {
		n.wholeLogin("Redis")
		if at, _, stated := n.child("ca_file"); stated && !r.TLS {
			at.fail("found certificates for a Redis that is spoken to without TLS; expected tls: true beside them")
		}
		return
	}
	if at, _, stated := n.child("ca_file"); stated && strings.HasPrefix(r.URL.Plain, "redis:") {
		at.fail("found certificates for a url without TLS; expected one that begins with rediss://")
	}
	for _, key := range []string{"username", "password", "tls"} {
		if at, _, stated := n.child(key); stated {
			at.fail("found %s beside url; expected the url to say it itself, as redis://user:password@host:port or rediss://", key)
		}
	}
}

// wholeLogin refuses a user without a password: nobody would be logged in, and
// commands would run as the default user.
func (n node) wholeLogin(of string) {
	if at, _, stated := n.child("username"); stated && !n.states("password") {
		at.fail("found a user of %s without a password; expected the place of one beside it", of)
	}
}

func (n node) login(into *Credentials) []field {
	return []field{
		{"username", func(n node) { n.text("a user of the sentinels", &into.Username) }},
		{"password", func(n node) { n.secret("a password of the sentinels", &into.Password) }},
	}
}

// redisURL reads a URL, or where one stands. What was found is not shown: it may
// hold a password.
func (n node) redisURL(into *RedisURL) {
	const expected = "expected env:NAME, file:PATH, or redis://host:port[/db] (rediss:// for TLS) without a password"
	if kind, _, _ := strings.Cut(n.Value, ":"); kind == inEnvironment || kind == inFile {
		n.secret("the URL of Redis", &into.Secret)
		return
	}
	u, err := url.Parse(n.Value)
	switch {
	case !n.isString() || err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" || !database.MatchString(u.Path) || u.RawQuery != "" || u.Fragment != "":
		n.fail("found a URL of another form; " + expected)
	case u.User != nil:
		n.fail("found a URL with a user; " + expected)
	default:
		into.Plain = n.Value
	}
}

// database is the path of a URL: none, or the number of a database.
var database = regexp.MustCompile(`^(/[0-9]{0,4})?$`)

// addresses reads a list of host:port, at least one.
func (n node) addresses(of string, into *[]string) {
	n.list("addresses of "+of, func(_ int, item node) {
		if strings.ContainsAny(item.Value, "@/") { // not shown: it may hold a password
			item.fail("found a URL, or a user; expected host:port alone, of one of the %s", of)
			return
		}
		var a string
		item.address(&a)
		if host, port, err := net.SplitHostPort(a); err == nil && (host == "" || port == "0") {
			item.fail("found %s; expected the host and the port of one of the %s", item.found(), of)
		}
		*into = append(*into, a)
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		n.fail("found an empty list; expected at least one of the %s", of)
	}
}

// prefix reads what keys begin with. Braces would say where on a cluster a key
// lies, and spaces are hard to see.
func (n node) prefix(into *string) {
	n.text("what the keys in Redis begin with", into)
	if strings.ContainsFunc(*into, func(c rune) bool { return c <= ' ' || c > '~' || c == '{' || c == '}' }) || len(*into) > 64 {
		n.fail("found a prefix of another form; expected at most 64 printable ASCII characters without spaces and braces, such as callgate:")
	}
}
