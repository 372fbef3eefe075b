package configs

import (
	"crypto/x509"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/tool"
)

// checkAuth checks the rules of authentication. The keys are made in every mode: a process
// keeps the mode that it was started with.
func (l *loader) checkAuth(root document.Node, c *Config) {
	mode := root.At("/auth/mode")
	_, auth, _ := root.Child("auth")
	switch {
	case c.Auth.Mode == AuthNone && !netx.IsLoopbackListener(c.Server.Listen) && !c.Auth.AllowAnyListener:
		root.At("/server/listen").Fail("found the address %q beyond loopback, with auth.mode none; expected a loopback address, another auth.mode, or auth.allow_any_listener: true", c.Server.Listen)
	case c.Auth.Mode == AuthKeys && c.PrincipalsFile == "":
		mode.Fail("found auth.mode %s without principals; expected the key principals, which names their file", c.Auth.Mode)
	case c.Auth.Mode == AuthJWT && !auth.Has("jwt"):
		mode.Fail("found auth.mode jwt without auth.jwt; expected at least its issuer and audience")
	}
	if c.Auth.Mode == AuthJWT && c.Server.PublicURL == "" && !netx.IsLoopbackListener(c.Server.Listen) {
		mode.Warn("clients of MCP are not told where to get a token, since server.public_url does not say how they see this gateway")
	}
	if u, err := url.Parse(c.Server.PublicURL); err == nil && u.Scheme == "http" && !netx.IsLoopbackHost(u.Hostname()) {
		root.At("/server/public_url").Warn("clients send their credentials without TLS: anyone who can read them can call in their place")
	}
	l.checkAdmin(root, c)
	checkListeners(root, c.Server)
	l.certificates(root, "/auth/jwt/ca_file", c.Auth.JWT.CAFile, &c.Auth.JWT.CA)
	l.certificates(root, "/telemetry/traces/ca_file", c.Traces.CAFile, &c.Traces.CA)
	l.certificates(root, "/audit/otlp/ca_file", c.OTLP.CAFile, &c.OTLP.CA)
	if c.Redis != nil {
		l.certificates(root, "/redis/ca_file", c.Redis.CAFile, &c.Redis.CA)
	}
	if len(l.report.Faults) > 0 {
		return
	}
	byHash := map[string]*identity.Principal{}
	for _, p := range c.Principals {
		byHash[p.KeySHA256] = &identity.Principal{
			Name: p.Name, Agents: p.Agents, Workspace: p.Workspace, Projects: p.Projects, Operator: p.Operator, Approves: p.Approves,
			OneThread: p.OneThread, HooksOnly: p.HooksOnly,
		}
	}
	keys, err := identity.NewAPIKeys(byHash)
	if err != nil {
		root.At("/principals").Fail("%v", err) // the reader has refused what could be wrong
	}
	c.Keys = keys
}

// checkExchanges reports a tool that is called as its caller where no caller has a token.
func checkExchanges(root document.Node, c *Config, entries []toolfile.Tool) {
	i := slices.IndexFunc(entries, func(e toolfile.Tool) bool {
		credential := e.Definition.Run.Credential
		return credential != nil && credential.In == tool.InExchange
	})
	if i >= 0 && c.Auth.Mode != AuthJWT {
		root.At("/auth/mode").Fail("found the tool %q, whose credential has in: exchange, and auth.mode %s; expected auth.mode jwt, since no other caller has a token to exchange, or another credential",
			entries[i].Definition.Name, c.Auth.Mode)
	}
}

// checkAdmin holds the rules of the admin listener: beyond loopback every request needs the
// credential of an operator. With tokens, the issuer decides which callers are operators.
func (l *loader) checkAdmin(root document.Node, c *Config) {
	if !c.Server.AdminBeyondLoopback() {
		return
	}
	at := root.At("/server/admin_listen")
	const found = "found the address %q beyond loopback, "
	switch {
	case c.Auth.Mode == AuthNone:
		at.Fail(found+"with auth.mode none; expected a loopback address, or auth.mode keys or jwt, since every request there needs the credential of an operator", c.Server.AdminListen)
	case c.Auth.Mode == AuthKeys && len(l.report.Faults) == 0 &&
		!slices.ContainsFunc(c.Principals, func(p Principal) bool { return p.Operator }):
		at.Fail(found+"and no operator; expected a loopback address, or a principal with operator: true, since every request there needs the credential of one", c.Server.AdminListen)
	}
}

// checkListeners reports two listeners of which the second would find its address taken.
func checkListeners(root document.Node, s Server) {
	host, port, _ := net.SplitHostPort(s.Listen) // both were read, or have a fault
	adminHost, adminPort, _ := net.SplitHostPort(s.AdminListen)
	local := strings.NewReplacer("localhost", "127.0.0.1") // what a listener takes of it
	same := local.Replace(strings.ToLower(host)) == local.Replace(strings.ToLower(adminHost)) || netx.IsUnspecifiedHost(host) || netx.IsUnspecifiedHost(adminHost)
	if port != adminPort || port == "0" || !same {
		return
	}
	at, key, other := "/server/admin_listen", "listen", s.Listen
	if _, stated := root.Resolve(at); !stated {
		at, key, other = "/server/listen", "admin_listen", s.AdminListen
	}
	root.At(at).Fail("found the port %s, which server.%s has too, at %s; expected another, or 0 for any", port, key, other)
}

// certificates reads a file of certificates that a key of the main file names.
func (l *loader) certificates(root document.Node, key, path string, into *string) {
	if path == "" {
		return
	}
	at := root.At(key)
	data, ok := l.file(l.resolve(l.folderOf(root.File), path), &at)
	if ok && !x509.NewCertPool().AppendCertsFromPEM(data) {
		at.Fail("%s: found no certificate; expected some in PEM", path)
	}
	*into = string(data)
}
