package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/telemetry"
)

// Authn maps credentials to principals. A token verifier holds the issuer's keys, so it
// outlives reloads that do not change its settings. It is safe for concurrent use, except
// for reloads, which must not overlap.
type Authn struct {
	Metrics *telemetry.Metrics
	Logger  *slog.Logger

	mu       sync.Mutex
	settings configs.JWT
	tokens   *identity.TokenVerifier // nil in the other modes
	stop     func()
}

// prepare returns the authenticator of a configuration; it is nil in mode none, which
// requires no credential. It is in use once the change is committed.
func (k *Authn) prepare(ctx context.Context, c *configs.Config) (gateway.Authenticator, change, error) {
	switch {
	case c.Auth.Mode == configs.AuthNone:
		return nil, change{doNothing, doNothing}, nil
	case c.Auth.Mode == configs.AuthKeys:
		return c.Keys, change{doNothing, doNothing}, nil // without keys it refuses every token
	case c.Auth.JWT.Issuer == "":
		// The mode is that of the start, and the file has another by now.
		return nil, change{}, errors.New(
			"found no auth.jwt; expected its issuer and audience, since this process was started with auth.mode jwt")
	}
	before, same := k.current(c.Auth.JWT)
	if same {
		return before, change{doNothing, doNothing}, nil
	}
	first := before == nil
	var inUse atomic.Bool // before that, a failure is the error of prepare
	inUse.Store(first)
	options := c.Auth.JWT.TokenOptions
	options.RootCAs = certPool(c.Auth.JWT.CA)
	options.OnRefused = func(r identity.Reason) { k.Metrics.TokenRefused(string(r)) }
	options.OnRefresh = k.reporter(&inUse)
	if !first {
		options.StartWithoutKeys = true // one attempt, whose success is checked below
	}
	tokens, err := identity.NewTokenVerifier(options)
	if err != nil {
		return nil, change{}, fmt.Errorf("auth.jwt: %w", err)
	}
	// Rules for keys that are known do not wait for their source.
	if tokens.AdoptKeys(before); tokens.Ready() != nil {
		if err := tokens.Start(ctx); err != nil {
			return nil, change{}, fmt.Errorf(
				"auth.jwt: found no keys that tokens can be verified with (%w); expected some, or start_without_keys: true", err)
		}
	}
	if !first {
		// Keep the current keys until the new issuer's keys load.
		if err := tokens.Ready(); err != nil {
			return nil, change{}, fmt.Errorf(
				"auth.jwt: found no keys that tokens can be verified with (%w); expected some before the old ones are given up", err)
		}
	}
	running, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = tokens.Run(running) // its one error is that it runs already
	}()
	stop := func() { cancel(); <-ended }
	keep := func() {
		inUse.Store(true)
		k.replace(c.Auth.JWT, tokens, stop)
	}
	return tokens, change{commit: keep, abort: stop}, nil
}

// replace swaps the verifier and stops the old one.
func (k *Authn) replace(settings configs.JWT, tokens *identity.TokenVerifier, stop func()) {
	k.mu.Lock()
	before := k.stop
	k.settings, k.tokens, k.stop = settings, tokens, stop
	k.mu.Unlock()
	if before != nil {
		before()
	}
}

// current returns the verifier in use, or nil, and whether it has these settings.
func (k *Authn) current(settings configs.JWT) (tokens *identity.TokenVerifier, same bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tokens, k.tokens != nil && reflect.DeepEqual(settings, k.settings)
}

// issuer is the issuer of accepted tokens; empty in modes other than jwt.
func (k *Authn) issuer() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.settings.Issuer
}

// unready says why no credential can be verified now, or nil.
func (k *Authn) unready() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tokens == nil {
		return nil
	}
	return k.tokens.Ready()
}

// reporter logs and counts refreshes of the keys; a repeated failure is logged once.
func (k *Authn) reporter(inUse *atomic.Bool) func(identity.RefreshResult) {
	reported := "" // the failure; reports come one at a time
	return func(r identity.RefreshResult) {
		k.Metrics.KeysFetched(r.Err == nil)
		if !inUse.Load() {
			return
		}
		switch {
		case r.Err == nil && reported != "":
			reported = ""
			k.Logger.Info("JWKS refresh succeeded again", "keys", r.Keys)
		case r.Err != nil && r.Err.Error() != reported:
			reported = r.Err.Error()
			reaction := "using cached keys"
			if r.Keys == 0 {
				reaction = "no caller can be authenticated"
			}
			k.Logger.Warn("JWKS refresh failed; "+reaction, "cause", reported, "keys", r.Keys)
		}
	}
}

// Close stops the refresh of keys.
func (k *Authn) Close() {
	k.mu.Lock()
	stop := k.stop
	k.stop = nil
	k.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (k *Authn) follow(ctx context.Context, c *configs.Config, next *gateway.Config) (change, error) {
	authn, prepared, err := k.prepare(ctx, c)
	if err == nil {
		next.Identity = authn
	}
	return prepared, err
}
