package tool

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// The forms of a Credential.
const (
	InBearer = "bearer" // Authorization: Bearer and the secret
	InHeader = "header" // a header of any name
	InBasic  = "basic"  // HTTP basic authentication (RFC 7617)
	InOAuth  = "oauth2" // a token of the OAuth client credentials grant (RFC 6749, section 4.4)
	// InExchange is a token for the caller itself, which the token endpoint issues for the caller's own.
	InExchange = "exchange"
)

// The grants by which the token of a caller is exchanged.
const (
	GrantTokenExchange = "token_exchange" // RFC 8693
	GrantJWTBearer     = "jwt_bearer"     // RFC 7523, section 2.1
	GrantEntraOBO      = "entra_obo"      // the same with what Microsoft Entra asks for: on behalf of
)

// Credential is the credential that the server of a tool asks for. It holds references to secrets and never a
// secret: env:NAME, file:/absolute/path, or a command.
type Credential struct {
	In string // one of the forms
	// Secret refers to the token, to the value of the header after its prefix, to the password, or
	// to the secret of the client.
	Secret string
	Name   string // of the header
	Prefix string // before the secret in the header, such as "Token "
	User   string // of basic: the name, or a reference to it
	OAuth  *OAuth // of oauth2 and exchange
}

// OAuth says where and how tokens are fetched.
type OAuth struct {
	TokenURL string   `key:"token_url" of:"where tokens are fetched" form:"url"`
	ClientID string   `key:"client_id"` // or a reference to it
	Scopes   []string `key:"scopes" of:"scopes" pattern:"^[!#-\\[\\]-~]+$"`
	// of the request, beside those of the grant
	Parameters map[string]string `key:"parameters"`
	// rather than in the header
	InBody bool `key:"client_auth" of:"how the client's id and secret are sent" words:"header body"`
	// a reference to certificates for the token URL; empty: the system's
	CAFile string `key:"ca_file"`
	// empty is public ones only
	Addresses []string      `key:"addresses" of:"addresses or prefixes" form:"address"`
	Timeout   time.Duration `key:"timeout" of:"how long fetching a token may take"` // 0 is 10 s

	// Of exchange alone:
	Grant       string        // one of the grants
	SubjectType string        // of token_exchange: what the caller's token is called, the end of its URN; "" is access_token
	MaxAge      time.Duration // how long an issued token is used at most; 0 is 5 min
}

// Bearer is the credential of a bearer token.
func Bearer(secret string) *Credential { return &Credential{In: InBearer, Secret: secret} }

// Header is the name of the header that the credential is sent in.
func (c *Credential) Header() string {
	if c.In == InHeader {
		return c.Name
	}
	return "Authorization"
}

// References lists the references to secrets. User and client id are among them where they are
// references.
func (c *Credential) References() []string {
	all := []string{c.Secret}
	if IsReference(c.User) {
		all = append(all, c.User)
	}
	if o := c.OAuth; o != nil {
		if IsReference(o.ClientID) {
			all = append(all, o.ClientID)
		}
		if o.CAFile != "" {
			all = append(all, o.CAFile)
		}
	}
	return all
}

// Key is equal for equal credentials alone; empty for none.
func (c *Credential) Key() string {
	if c == nil {
		return ""
	}
	parts := []string{c.In, c.Secret, c.Name, c.Prefix, c.User}
	if o := c.OAuth; o != nil {
		parts = append(parts, o.TokenURL, o.ClientID, o.CAFile, o.Timeout.String(), strings.Join(o.Scopes, " "),
			strings.Join(o.Addresses, " "), o.Grant, o.SubjectType, o.MaxAge.String())
		if o.InBody {
			parts = append(parts, "body")
		}
		for _, name := range slices.Sorted(maps.Keys(o.Parameters)) {
			parts = append(parts, name, o.Parameters[name])
		}
	}
	return strings.Join(parts, "\x00")
}

// The beginnings of references to secrets.
const (
	referenceEnv     = "env:"
	referenceFile    = "file:"
	referenceCommand = "command:"
)

// IsReference reports whether a text refers to a secret.
func IsReference(text string) bool {
	return strings.HasPrefix(text, referenceEnv) || strings.HasPrefix(text, referenceFile) || strings.HasPrefix(text, referenceCommand)
}
