package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// UnfitError says why Redis must not be used though it answers: its version, or
// its configuration. Only the operator can change that, so a gateway does not
// start with such a Redis.
type UnfitError string

func (e UnfitError) Error() string { return string(e) }

// ErrOtherInstance says that an instance answers which was not among those that
// were found: it may have lost what was written to them.
var ErrOtherInstance = errors.New("another instance of Redis answers, which may not hold what was written")

// parseInfo reads the text of INFO into its fields.
func parseInfo(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// supportedVersion reports whether a version of Redis is 6.0 or later.
func supportedVersion(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 6
}

// Conn is a client with the instances of Redis as they were found: connections to another one, such as
// one that was started again or promoted, are refused. After a failure it is closed, and another is
// opened.
type Conn struct {
	client backend
	once   sync.Once

	mu    sync.Mutex
	known map[string]bool
}

// Open makes the client. Nothing is sent to Redis yet.
func (o *Options) Open(s Settings) (*Conn, error) {
	c := &Conn{}
	var err error
	c.client, err = newClient(o, s, c.verify)
	return c, err
}

// Close closes the client, in the background: that may wait for requests in flight.
func (c *Conn) Close() {
	c.once.Do(func() {
		go func() { _ = c.client.Close() }()
	})
}

// Node returns the node that has a key.
func (c *Conn) Node(ctx context.Context, key string) (Node, error) { return c.client.node(ctx, key) }

// Masters is how many nodes have keys: 1 where there is no cluster.
func (c *Conn) Masters(ctx context.Context) (int, error) { return c.client.masters(ctx) }

// Reload finds anew which node of a cluster has which keys.
func (c *Conn) Reload(ctx context.Context) { c.client.reload(ctx) }

// Expect has new connections refused but to instances with these run ids; nil accepts every one.
// The empty run id means an instance that forbids INFO.
func (c *Conn) Expect(known map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = known
}

// verify refuses an instance that is not expected. Sentinels, which are greeted too, keep no state
// and pass.
func (c *Conn) verify(info func() (string, error)) error {
	c.mu.Lock()
	known := c.known
	c.mu.Unlock()
	if known == nil {
		return nil
	}
	text, err := info()
	if err != nil && !known[""] {
		return err
	}
	fields := parseInfo(text)
	if fields["redis_mode"] == "sentinel" || known[fields["run_id"]] {
		return nil
	}
	return ErrOtherInstance
}

// Instance is what a node says of itself.
type Instance struct {
	Version string
	Run     string // changes when it is started
	Policy  string // what it evicts; "": it does not say
	Master  bool
	// AppendOnly says that it writes an append-only file.
	AppendOnly bool
	// History is the replication history of a node that was promoted. Replicas that come and go do not
	// change it.
	History string
}

// Inspect asks a node what it is. A version before 6.0, and a policy to evict, are an UnfitError;
// evicted says what would come of that.
func Inspect(ctx context.Context, n Node, evicted string) (Instance, error) {
	info, err := Do(ctx, n, "info").Text()
	if err != nil {
		return Instance{}, err
	}
	fields := parseInfo(info)
	i := Instance{Version: fields["redis_version"], Run: fields["run_id"], Policy: fields["maxmemory_policy"],
		Master: fields["role"] == "master", AppendOnly: fields["aof_enabled"] == "1"}
	if i.Version != "" && !supportedVersion(i.Version) {
		return i, UnfitError(fmt.Sprintf("found Redis %.20s, expected 6.0 or later", i.Version))
	}
	if i.Policy != "" && i.Policy != "noeviction" {
		return i, UnfitError(fmt.Sprintf("found maxmemory-policy %.20s, expected noeviction: %s", i.Policy, evicted))
	}
	if strings.Trim(fields["master_replid2"], "0") != "" {
		i.History = fields["master_replid"]
	}
	return i, nil
}
