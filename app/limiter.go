package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/telemetry"
)

// sharedLimiter counts what replicas share. It tells whether they do, and if not, why.
type sharedLimiter interface {
	ratelimit.Limiter
	budget.Limiter
	Shared() (shared bool, cause error)
	Close() error
}

// limiter counts budgets, in this process or on Redis.
type limiter struct {
	ratelimit.Limiter
	shared sharedLimiter // nil where they are this process's own
}

// openLimiter returns the limiter that a configuration asks for. One on Redis works even
// while Redis is unreachable: it refuses, or grants this replica's part, by on_store_loss.
func openLimiter(ctx context.Context, c *configs.Config, redis redisconn.Options, metrics *telemetry.Metrics, logger *slog.Logger,
	wait time.Duration) (limiter, error) {
	if c.Redis == nil {
		metrics.LimitsLocal(func() bool { return false })
		return limiter{Limiter: ratelimit.NewLocal(time.Now)}, nil
	}
	r, warnings, err := linked.redisLimiter(ctx, redis, wait, func(shared bool, cause error) {
		if shared {
			logger.Info("limits are shared on Redis")
			return
		}
		logger.Error("Redis is unreachable; limits are not shared", "cause", cause.Error())
	})
	if err != nil {
		return limiter{}, fmt.Errorf("redis: %w", err)
	}
	for _, w := range warnings {
		logger.Warn("Redis warning", "warning", w)
	}
	metrics.LimitsLocal(func() bool { shared, _ := r.Shared(); return !shared })
	return limiter{Limiter: r, shared: r}, nil
}

// unavailable says why limits that should be shared are not; empty if they are.
func (l limiter) unavailable() string {
	if l.shared == nil {
		return ""
	}
	if shared, cause := l.shared.Shared(); !shared && cause != nil {
		return cause.Error()
	}
	return ""
}

// Close closes the limiter's connections.
func (l limiter) Close() error {
	if l.shared == nil {
		return nil
	}
	return l.shared.Close()
}

// redisOptions says where the Redis of limits, budgets and calls is. It reads every secret once, so
// that a missing one is reported at the start; each connection reads it again, since it may change.
func redisOptions(r *configs.Redis) (redisconn.Options, error) {
	if r == nil {
		return redisconn.Options{}, nil
	}
	o := redisconn.Options{Prefix: r.Prefix, Cluster: r.Cluster.Addresses}
	if r.URL.IsSet() {
		url, err := r.URL.Read()
		if err != nil {
			return o, fmt.Errorf("url: %w", err)
		}
		if r.CA != "" && !strings.HasPrefix(url, "rediss:") {
			return o, errors.New("ca_file: found certificates for a url without TLS; expected one that begins with rediss://")
		}
		o.URL = func() string {
			url, err := r.URL.Read()
			if err != nil {
				return "" // which is no URL, and refused
			}
			return url
		}
	}
	var err error
	if o.Credentials, err = credentials(r.Username, r.Password); err != nil {
		return o, fmt.Errorf("password: %w", err)
	}
	o.Sentinel = redisconn.Sentinel{Master: r.Sentinel.Master, Addresses: r.Sentinel.Addresses}
	if o.Sentinel.Credentials, err = credentials(r.Sentinel.Username, r.Sentinel.Password); err != nil {
		return o, fmt.Errorf("sentinel: password: %w", err)
	}
	if r.TLS || r.CA != "" { // with a URL, which says it itself, only the certificates count
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: certPool(r.CA)}
	}
	return o, nil
}

func credentials(name string, place secret.Ref) (func() (user, password string), error) {
	if name == "" && !place.IsSet() {
		return nil, nil
	}
	if place.IsSet() {
		if _, err := place.Read(); err != nil {
			return nil, err
		}
	}
	return func() (user, password string) {
		password, err := place.Read()
		if err != nil {
			password = ""
		}
		return name, password
	}, nil
}

// certPool holds the certificates of a PEM text; nil means the system's.
func certPool(pem string) *x509.CertPool {
	if pem == "" {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(pem)) // validated when the configuration was loaded
	return pool
}
