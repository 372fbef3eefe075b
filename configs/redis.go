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
	URL         RedisURL
	Sentinel    Sentinel
	Cluster     []string    // some of its nodes, host:port
	Credentials Credentials // of Sentinel's master and of Cluster
	TLS         bool        // of Sentinel and Cluster; a URL says it itself
	// CAFile names certificates in PEM that are trusted instead of the system's; CA is its
	// content.
	CAFile, CA string
	// Prefix begins every key; gateways that share limits have the same.
	Prefix string
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

// Sentinel is a master that sentinels watch.
type Sentinel struct {
	Master      string
	Addresses   []string
	Credentials Credentials // of the sentinels
}

// Credentials is a user and the place of its password. Both may be absent; a password alone
// is the default user's.
type Credentials struct {
	Username string
	Password secret.Ref
}

const defaultPrefix = "callgate:"

// readRedis reads where Redis is.
func readRedis(n document.Node) *Redis {
	r := &Redis{Prefix: defaultPrefix}
	ok := n.Object(
		document.Field("url", func(n document.Node) { readRedisURL(n, &r.URL) }),
		document.Field("sentinel", func(n document.Node) {
			s := &r.Sentinel
			n.Object(append(credentialFields(&s.Credentials),
				document.Text("master", "the name of the master", &s.Master),
				document.Field("addresses", func(n document.Node) { readAddresses(n, "sentinels", &s.Addresses) }),
			)...)
			n.Requires("found sentinels without a %s; expected its name and their addresses", "master")
			n.Requires("found a master without its sentinels; expected their %s", "addresses")
			n.Describes(func(s *document.Schema) { s.DependentRequired = map[string][]string{"username": {"password"}} })
			checkPassword(n, "the sentinels")
		}),
		document.Field("cluster", func(n document.Node) {
			n.Object(document.Field("addresses", func(n document.Node) { readAddresses(n, "nodes of the cluster", &r.Cluster) }))
			n.Requires("found a cluster without nodes; expected the %s of some", "addresses")
		}),
		document.Text("username", "a user of Redis", &r.Credentials.Username),
		document.Field("password", func(n document.Node) { secret.Decode(n, "a password of Redis", &r.Credentials.Password) }),
		document.Bool("tls", "whether Redis is spoken to over TLS", &r.TLS),
		document.Text("ca_file", "a file of certificates", &r.CAFile),
		document.Field("prefix", func(n document.Node) { readPrefix(n, &r.Prefix) }),
	)
	n.Describes(func(s *document.Schema) {
		s.DependentRequired = map[string][]string{"username": {"password"}}
		s.OneOf = []*document.Schema{{Required: []string{"url"}}, {Required: []string{"sentinel"}}, {Required: []string{"cluster"}}}
	})
	if !ok {
		return r
	}
	checkRedis(n, r)
	return r
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

func credentialFields(into *Credentials) []document.FieldReader {
	return []document.FieldReader{
		document.Text("username", "a user of the sentinels", &into.Username),
		document.Field("password", func(n document.Node) { secret.Decode(n, "a password of the sentinels", &into.Password) }),
	}
}

// readRedisURL reads a URL, or the place of one. Messages do not show the value found: it
// may hold a password.
func readRedisURL(n document.Node, into *RedisURL) {
	n.Matching("env:NAME, file:PATH, or redis://host:port[/db] (rediss:// for TLS) without a password",
		`^(env|file):.+$|^rediss?://[^@/?#]+(/[0-9]{0,4})?$`)
	const expected = "expected env:NAME, file:PATH, or redis://host:port[/db] (rediss:// for TLS) without a password"
	if secret.IsPlace(n.Value) {
		secret.Decode(n, "the URL of Redis", &into.Secret)
		return
	}
	u, err := url.Parse(n.Value)
	switch {
	case !n.IsString() || err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Hostname() == "" || !databasePath.MatchString(u.Path) || u.RawQuery != "" || u.Fragment != "":
		n.Fail("found a URL of another form; " + expected)
	case u.User != nil:
		n.Fail("found a URL with a user; " + expected)
	default:
		into.Plain = n.Value
	}
}

// databasePath is the path of a URL: none, or the number of a database.
var databasePath = regexp.MustCompile(`^(/[0-9]{0,4})?$`)

// readAddresses reads a list of host:port, at least one.
func readAddresses(n document.Node, of string, into *[]string) {
	n.List("addresses of "+of, func(_ int, item document.Node) {
		if strings.ContainsAny(item.Value, "@/") { // not shown: it may hold a password
			item.Fail("found a URL, or a user; expected host:port alone, of one of the %s", of)
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
		n.Fail("found a prefix of another form; expected at most 64 printable ASCII characters without spaces and braces, such as callgate:")
	}
}
