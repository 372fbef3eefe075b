package registry

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
)

// The bounds of a credential.
const (
	maxCredentialName  = 64 // of a header, and of its prefix, in bytes
	maxCredentialText  = 1 << 10
	maxScopes          = 64
	maxTokenParameters = 16
	maxTokenFetch      = time.Minute
	minTokenFetch      = time.Millisecond
	minExchangedAge    = time.Second
	maxExchangedAge    = time.Hour
)

// credentialForms are those of tool.Credential; read only.
var credentialForms = []string{tool.InBearer, tool.InHeader, tool.InBasic, tool.InOAuth, tool.InExchange}

// The parameters of a request for a token that no other may replace, and those of an exchange; read only.
var (
	ownTokenParameters    = []string{"grant_type", "client_id", "client_secret", "scope"}
	ownExchangeParameters = []string{
		"subject_token", "subject_token_type", "actor_token", "actor_token_type", "requested_token_type", "assertion",
		"requested_token_use",
	}
)

// checkCredential reports the faults of a credential. A message never holds a reference: it may be
// a secret by mistake.
func checkCredential(r *tool.Run, remote bool, report func(string, ...string)) {
	c := r.Credential
	if c == nil {
		return
	}
	fail := func(message string, field ...string) {
		report(message, append([]string{"run", "credential"}, field...)...)
	}
	switch {
	case len(r.Command) > 0:
		fail("found a credential; expected none with a command, which has env instead")
		return
	case !remote && r.Type != "http":
		fail("found a credential; expected none with the type " + parser.Quote(r.Type))
		return
	case c.In == tool.InExchange && r.Type != "http":
		fail("found in: exchange with the type "+parser.Quote(r.Type)+"; expected the type \"http\", the only one that calls a tool as its caller, or another credential", "in")
		return
	}
	checkOneOf(fail, c.In, credentialForms, "in")
	if !tool.IsReference(c.Secret) {
		fail("found no reference to a secret; expected env:NAME, file:PATH or a command")
	}
	switch c.In {
	case tool.InHeader:
		checkCredentialHeader(c, fail)
		for _, p := range r.Parameters {
			name := p.Name
			if name == "" {
				name = p.Argument
			}
			if p.In == "header" && sameHeader(name, c.Name) {
				report("found an argument for the header of the credential, which it would replace; expected another header", "run",
					"parameters", p.Argument)
			}
		}
	case tool.InBasic:
		if !tool.IsReference(c.User) && (c.User == "" || strings.Contains(c.User, ":") || !within(c.User)) {
			fail("found no user, or one with a colon or control characters; expected a name, or env:NAME or file:PATH (RFC 7617)", "user")
		}
	case tool.InOAuth, tool.InExchange:
		checkOAuth(c, fail)
	}
}

// within reports a text that is not too long and has no control characters.
func within(s string) bool {
	return len(s) <= maxCredentialText && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func checkCredentialHeader(c *tool.Credential, fail func(string, ...string)) {
	name := strings.ReplaceAll(strings.ToLower(c.Name), "_", "-")
	own := ReservedHeader(c.Name) && name != "authorization" && name != "proxy-authorization" && name != "cookie" ||
		name == "oxp-version" || name == "last-event-id" || strings.HasPrefix(name, "mcp-")
	if len(c.Name) > maxCredentialName || !ascii.IsToken(c.Name) || own {
		fail(fmt.Sprintf("found %s; expected the name of a header for a credential, such as X-Api-Key", parser.Quote(c.Name)), "name")
	}
	if len(c.Prefix) > maxCredentialName || !ascii.IsPrintable(c.Prefix) || strings.HasPrefix(c.Prefix, " ") {
		fail(fmt.Sprintf("found %s; expected at most %d printable ASCII characters, such as \"Token \"", parser.Quote(c.Prefix),
			maxCredentialName), "prefix")
	}
}

// checkOAuth reports the faults of the settings of a client of OAuth.
func checkOAuth(c *tool.Credential, fail func(string, ...string)) {
	o, own := c.OAuth, ownTokenParameters
	if o == nil {
		fail("found no token_url; expected token_url, client_id and client_secret")
		return
	}
	if c.In == tool.InExchange {
		own = append(slices.Clone(own), ownExchangeParameters...)
		checkExchange(o, fail)
	}
	if problem := checkURL(o.TokenURL); problem != "" {
		fail(problem, "token_url")
	} else if u, err := url.Parse(o.TokenURL); err != nil || u.Scheme != "https" && !netx.IsLoopbackHost(u.Hostname()) {
		fail("found plain http; expected https, or http only to this machine: the client's secret is sent there", "token_url")
	}
	if !tool.IsReference(o.ClientID) && (o.ClientID == "" || !within(o.ClientID)) {
		fail("found no id of a client; expected one, or env:NAME or file:PATH", "client_id")
	}
	if len(o.Scopes) > maxScopes {
		fail(fmt.Sprintf("found %d scopes; expected at most %d", len(o.Scopes), maxScopes), "scopes")
	}
	for i, scope := range o.Scopes {
		if len(scope) > maxCredentialText || scope == "" || !ascii.IsVisible(scope) || strings.ContainsAny(scope, `"\`) {
			fail(fmt.Sprintf("found %s; expected a scope of visible ASCII characters without quotes and backslashes (RFC 6749)",
				parser.Quote(scope)), "scopes", fmt.Sprint(i))
		}
	}
	if len(o.Parameters) > maxTokenParameters {
		fail(fmt.Sprintf("found %d parameters; expected at most %d", len(o.Parameters), maxTokenParameters), "parameters")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Parameters)) {
		switch {
		case slices.Contains(own, name):
			fail(fmt.Sprintf("found the parameter %s, which has a key of its own or is always the same; expected another",
				parser.Quote(name)), "parameters", name)
		case name == "" || !within(name) || !within(o.Parameters[name]):
			fail(fmt.Sprintf("found a parameter with control characters, without a name, or of more than %d bytes", maxCredentialText),
				"parameters", name)
		}
	}
	checkAddresses(o.Addresses, fail, "addresses")
	if o.Timeout != 0 && (o.Timeout < minTokenFetch || o.Timeout > maxTokenFetch) {
		fail(outside(o.Timeout, minTokenFetch, maxTokenFetch), "timeout")
	}
}

// outside says that a duration is out of its bounds.
func outside(d, low, high time.Duration) string {
	return fmt.Sprintf("found %s; expected %s to %s", duration.Spell(d), duration.Spell(low), duration.Spell(high))
}

// checkExchange reports the faults of what is said of an exchange alone.
func checkExchange(o *tool.OAuth, fail func(string, ...string)) {
	checkOneOf(fail, o.Grant, []string{tool.GrantTokenExchange, tool.GrantJWTBearer, tool.GrantEntraOBO}, "grant")
	if o.SubjectType != "" && o.Grant != tool.GrantTokenExchange {
		fail("found subject_type with the grant "+parser.Quote(o.Grant)+"; expected it only with token_exchange: others send the token as an assertion", "subject_type")
	}
	if o.Grant == tool.GrantEntraOBO {
		checkEntra(o, fail)
	}
	if o.MaxAge != 0 && (o.MaxAge < minExchangedAge || o.MaxAge > maxExchangedAge) {
		fail(outside(o.MaxAge, minExchangedAge, maxExchangedAge), "max_age")
	}
}

// checkEntra reports what Entra does not take. The scopes name the resource that the token is for, which nothing else
// does, and are either all that the user has consented to, or some of it.
func checkEntra(o *tool.OAuth, fail func(string, ...string)) {
	for _, name := range []string{"audience", "resource"} {
		if _, there := o.Parameters[name]; there {
			fail("found "+name+" with the grant entra_obo; expected only scopes, which say whom the token is for", "parameters")
		}
	}
	const expected = "expected the resource and /.default, such as api://orders/.default, or scopes of one resource, each with the resource before it"
	if len(o.Scopes) == 0 {
		fail("found no scopes with the grant entra_obo; "+expected, "scopes")
		return
	}
	resource, _ := cutScope(o.Scopes[0])
	for i, scope := range o.Scopes {
		if of, name := cutScope(scope); of == "" || of != resource || name == "" || name == ".default" && len(o.Scopes) > 1 {
			fail("found "+parser.Quote(scope)+"; "+expected, "scopes", fmt.Sprint(i))
		}
	}
}

// cutScope cuts a scope into its resource and its name; without a resource that is empty.
func cutScope(scope string) (resource, name string) {
	if at := strings.LastIndexByte(scope, '/'); at >= 0 {
		return scope[:at], scope[at+1:]
	}
	return "", scope
}
