package tool

import (
	"fmt"
	"io"
	"time"
)

// Caller is the authenticated caller of one call, with the token by which it was authenticated. It
// lives as long as its call, and no form of printing or encoding shows the token.
type Caller struct {
	Name    string    // with the issuer of its token; no other caller has it
	Expires time.Time // from then on its token is not valid

	token string
}

// NewCaller returns a caller with the token by which it was authenticated.
func NewCaller(name, token string, expires time.Time) *Caller { return &Caller{name, expires, token} }

// Token is the caller's token. It may be sent to the token endpoint of a credential, and nowhere else.
func (c *Caller) Token() string { return c.token }

// minTokenLife is how long a token must still be valid to be exchanged.
const minTokenLife = 30 * time.Second

// Expired reports whether the token has expired, or is about to.
func (c *Caller) Expired(now time.Time) bool { return c.Expires.Sub(now) < minTokenLife }

// Format writes the name alone.
func (c Caller) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.Name) }
