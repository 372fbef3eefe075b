package redisconn

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// UnfitError says why Redis must not be used though it answers: its version, or
// its configuration. Only the operator can change that, so a gateway does not
// start with such a Redis.
type UnfitError string

func (e UnfitError) Error() string { return string(e) }

// ErrOtherInstance says that an instance answers which was not among those that
// were found: it may have lost what was written to them.
var ErrOtherInstance = errors.New("another instance of Redis answers, which may not hold what was written")

// ParseInfo reads the text of INFO into its fields.
func ParseInfo(info string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// SupportedVersion reports whether a version of Redis is 6.0 or later.
func SupportedVersion(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 6
}

// Instances are the run ids of the instances that were found when a client was
// made. The zero value knows none and accepts every instance.
type Instances struct {
	mu    sync.Mutex
	known map[string]bool
}

// Set replaces the known run ids; nil accepts every instance. The empty run id means an
// instance that forbids INFO.
func (i *Instances) Set(known map[string]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.known = known
}

// Verify is for Settings.OnConnect: it refuses an instance that is not known,
// such as one that was started again or promoted. Sentinels, which are greeted
// too, keep no state and pass.
func (i *Instances) Verify(ctx context.Context, c *redis.Conn) error {
	i.mu.Lock()
	known := i.known
	i.mu.Unlock()
	if known == nil {
		return nil
	}
	info, err := c.Info(ctx, "server").Result()
	if err != nil && !known[""] {
		return err
	}
	fields := ParseInfo(info)
	if fields["redis_mode"] == "sentinel" || known[fields["run_id"]] {
		return nil
	}
	return ErrOtherInstance
}
