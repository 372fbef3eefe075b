package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/wholefile"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// KeysReadInterval is how often the keys of callbacks are read while they are used.
const KeysReadInterval = time.Second

// KeyLeadTime is how long a new key is listed before it signs, so that every gateway knows
// it by then.
const KeyLeadTime = time.Minute

// Callbacks makes and verifies the URLs at which callback tools answer. It is safe for
// concurrent use.
type Callbacks struct {
	logger *slog.Logger
	now    func() time.Time

	mu        sync.Mutex
	listen    string // where this gateway listens; empty while it does not
	url       string // how tools see it, where that is stated
	secret    secret.Ref
	ownFile   string            // the file of the keys that are its own
	bases     map[string]string // the addresses of servers, by their names
	notified  []tool.Server     // those that are told of closed threads
	keys      *identity.CallbackKeys
	readAt    time.Time
	readError string // why the keys could not be read; empty where they were
}

// NewCallbacks reads the keys of a configuration with callback tools, and creates them if
// they are the gateway's own and do not exist. If there are no such tools, it does so when
// a reload adds the first.
func NewCallbacks(c *configs.Config, logger *slog.Logger) (*Callbacks, error) {
	b := &Callbacks{logger: logger, now: time.Now}
	prepared, err := b.follow(context.Background(), c, nil)
	if err != nil {
		return nil, err
	}
	prepared.commit()
	return b, nil
}

// follow reads the keys that a configuration names.
func (b *Callbacks) follow(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
	next := Callbacks{secret: c.Callbacks.Keys, ownFile: configs.CallbackKeysPath(c.DataDir)}
	if hasCallbackTools(c) {
		var err error
		if next.keys, err = next.read(b.now()); err != nil {
			return change{}, fmt.Errorf("the keys of callbacks: %w", err)
		}
	}
	next.notified = callbackServers(c)
	commit := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if next.keys != nil || next.secret != b.secret || next.ownFile != b.ownFile {
			b.keys, b.readAt = next.keys, time.Time{}
		}
		b.url, b.secret, b.ownFile, b.bases = c.Callbacks.URL, next.secret, next.ownFile, map[string]string{}
		for _, s := range c.Servers {
			b.bases[s.Name] = s.URL
		}
		b.notified = next.notified
	}
	return change{commit: commit, abort: doNothing}, nil
}

// publicURL is the URL of this gateway for others; empty if it is not known.
func (b *Callbacks) publicURL() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	base, err := b.baseURL()
	if err != nil {
		return ""
	}
	return base
}

// baseURL is the URL of this gateway for others: the configured one, or the address it
// listens on.
func (b *Callbacks) baseURL() (base string, err error) {
	switch {
	case b.listen == "":
		return "", errors.New("nothing listens for an answer")
	case b.url != "":
		return b.url, nil
	case netx.IsUnspecifiedListener(b.listen):
		return "", errors.New("callbacks.url is not stated, and server.listen is no address to call")
	}
	return "http://" + b.listen, nil
}

// hasCallbackTools reports whether a configuration has tools of type callback.
func hasCallbackTools(c *configs.Config) bool {
	for _, entry := range c.Tools.Entries() {
		if entry.Run().Type == lockfile.Callback {
			return true
		}
	}
	return false
}

// callbackServers lists the callback servers of a configuration, also those without an accepted
// tool, and its callback tools that are stated by themselves, without a name.
func callbackServers(c *configs.Config) (all []tool.Server) {
	for _, s := range c.Servers {
		if s.Type == lockfile.Callback {
			all = append(all, s.Server)
		}
	}
	for _, entry := range c.Tools.Entries() {
		if run := entry.Run(); run.Type == lockfile.Callback && run.Server == "" {
			all = append(all, tool.Server{Type: run.Type, URL: run.URL, Credential: run.Credential, Addresses: run.Addresses})
		}
	}
	return all
}

// read reads the keys, and creates the gateway's own if they do not exist.
func (b *Callbacks) read(now time.Time) (*identity.CallbackKeys, error) {
	if b.secret.IsSet() {
		text, err := b.secret.Read()
		if err != nil {
			return nil, err
		}
		return parseKeys(b.secret.String(), text)
	}
	text, err := os.ReadFile(b.ownFile)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKeys(b.ownFile, now)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.ownFile, oserr.Reason(err))
	}
	return parseKeys(b.ownFile, string(text))
}

func parseKeys(where, text string) (*identity.CallbackKeys, error) {
	keys, err := identity.ParseCallbackKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return keys, nil
}

// makeKeys writes the first key of a gateway.
func makeKeys(file string, now time.Time) (*identity.CallbackKeys, error) {
	keys := (*identity.CallbackKeys)(nil).Rotate(now, 0)
	if err := wholefile.Replace(file, keys.Encode()); err != nil {
		return nil, fmt.Errorf("%s: %w", file, oserr.Reason(err))
	}
	return keys, nil
}

// current returns the current keys. If they cannot be read, it keeps the previous ones and
// logs that once.
func (b *Callbacks) current(now time.Time) (*identity.CallbackKeys, error) {
	if b.keys != nil && now.Sub(b.readAt) < KeysReadInterval && !now.Before(b.readAt) {
		return b.keys, nil
	}
	b.readAt = now
	keys, err := b.read(now)
	if err != nil {
		if b.readError != err.Error() {
			b.logger.Error("callback keys could not be read", "cause", err.Error(), "using_cached", b.keys != nil)
		}
		b.readError = err.Error()
		if b.keys == nil {
			return nil, err
		}
		return b.keys, nil
	}
	b.keys, b.readError = keys, ""
	return keys, nil
}

// listening says where tools can be answered to, where nothing else is stated.
func (b *Callbacks) listening(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listen = address
}

// address returns the URL for the answer to a call, valid until a time. It is recognised
// for as long as the call is kept: an answer that comes too late is recorded as late, and a
// subscription continues.
func (b *Callbacks) address(callID string, until time.Time) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	base, err := b.baseURL()
	if err != nil {
		return "", err
	}
	now := b.now()
	keys, err := b.current(now)
	if err != nil {
		return "", err
	}
	token, err := keys.Issue(callID, now, until.Add(store.Retention))
	if err != nil {
		return "", err
	}
	return base + "/v1/callbacks/" + token, nil
}

// base is the URL of a server, or "".
func (b *Callbacks) base(server string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bases[server]
}

// servers lists those that are told of closed threads.
func (b *Callbacks) servers() []tool.Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.notified
}

// verify returns the id of the call that a token was issued for, or "".
func (b *Callbacks) verify(token string) string {
	b.mu.Lock()
	now := b.now()
	keys := b.keys
	if keys != nil || b.secret.IsSet() || exists(b.ownFile) { // else none was ever given
		keys, _ = b.current(now) // without keys no token is good
	}
	b.mu.Unlock()
	return keys.Verify(token, now)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
