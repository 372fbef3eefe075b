package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// timed holds what happens with Redis to its times too, on a machine that has nothing
// else to do.
var timed = os.Getenv("CALLGATE_REDIS_FAULTS") != ""

const echoCall = `{"tool":{"name":"echo","arguments":{}}}`

// sharing are the files of gateways that share their limits on the Redis at
// REDIS_URL. Each has its data in a folder of its own, so that one main
// file is that of all.
func sharing(t testing.TB, limits string) (config string) {
	t.Helper()
	dir := t.TempDir()
	config = permitAll(t, dir)
	for name, text := range map[string]string{
		"callgate.yaml":   "server: {" + anyPort + "}\nredis: {url: \"env:REDIS_URL\"}\n",
		"limits.yaml":     limits,
		"tools/echo.yaml": "tools:\n  - {name: echo, effect: read, input_schema: {type: object}, run: {type: demo}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+"# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return config
}

// quickDir is a folder for a data_dir whose writes cost little where the system
// has one in memory.
func quickDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "callgate-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// serveThree starts three gateways with one configuration.
func serveThree(t testing.TB, config string, environment ...string) []*gate {
	t.Helper()
	var all []*gate
	for range 3 {
		all = append(all, serveGateIn(t, quickDir(t), config, environment...))
	}
	return all
}

// operators is what the admin listener says of a gateway.
type operators struct {
	Ready   bool
	Digest  string
	Limits  string
	Calls   string
	Callers string
	Faults  []string
	Restart []string
}

func (g *gate) operators(t testing.TB) operators {
	t.Helper()
	var o operators
	if r := g.askAdmin(t, "/readyz"); json.Unmarshal([]byte(r.body), &o) != nil {
		t.Fatalf("/readyz: %d %s", r.status, r.body)
	}
	return o
}

// awaitShared waits until the limits are shared. A busy machine may have missed
// Redis at the start.
func (g *gate) awaitShared(t testing.TB) {
	t.Helper()
	eventually(t, "the limits are shared", func() bool { return g.operators(t).Limits == "" })
}

// counts tells whether a metric of the gateway has a value, such as "1".
func (g *gate) counts(t testing.TB, metric, value string) bool {
	t.Helper()
	return strings.Contains(g.askAdmin(t, "/metrics").body, "\n"+metric+" "+value+"\n")
}

// flow is what became of the calls that were offered to several gateways for some
// time.
type flow struct {
	admitted, refused int
	unavailable       int           // refused since Redis came and went while they were judged
	span              time.Duration // from before the first question to after the last answer
	spent             time.Duration // from the first answer to the last question that was refused: the limit was spent then
	first             time.Duration // until the first refusal
	silence           time.Duration // the longest without a refusal from then on
	odd               map[string]int
}

// offer asks every gateway on a few connections, each as soon as it was answered
// and a little later, until the time is over. halfway, if there is one, happens
// in between.
func offer(t testing.TB, gates []*gate, long time.Duration, halfway func()) flow {
	t.Helper()
	f := flow{odd: map[string]int{}}
	var mu sync.Mutex
	began := time.Now()
	var answeredFirst, refusedLast time.Time
	note := func(asked time.Time, r reply, err error) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if answeredFirst.IsZero() {
			answeredFirst = now
		}
		switch {
		case err != nil:
			f.odd[err.Error()]++
		case r.status == http.StatusOK:
			f.admitted++
		case r.code() == "rate_limited":
			if f.refused++; f.refused == 1 {
				f.first, refusedLast = now.Sub(began), now
			}
			f.silence = max(f.silence, now.Sub(refusedLast))
			f.spent = max(f.spent, asked.Sub(answeredFirst))
			refusedLast = now
		case r.code() == "limiter_unavailable":
			f.unavailable++
		default:
			f.odd[fmt.Sprint(r.status, " ", r.code())]++
		}
	}
	over := make(chan struct{})
	var askers sync.WaitGroup
	for _, g := range gates {
		for range 2 {
			askers.Go(func() {
				pace := time.NewTicker(20 * time.Millisecond)
				defer pace.Stop()
				for {
					asked := time.Now()
					r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", echoCall, "Content-Type", "text/plain")
					note(asked, r, err)
					select {
					case <-over:
						return
					case <-pace.C:
					}
				}
			})
		}
	}
	time.Sleep(long / 2)
	if halfway != nil {
		halfway()
	}
	time.Sleep(time.Until(began.Add(long)))
	close(over)
	askers.Wait()
	f.span = time.Since(began)
	if f.refused > 0 {
		f.silence = max(f.silence, time.Since(refusedLast))
	}
	return f
}

// TestOneLimitForThree offers three gateways on one Redis more than one limit:
// together they let pass what it says, no more while Redis dies and comes back,
// and share it again soon.
func TestOneLimitForThree(t *testing.T) {
	const rate, burst = 20, 20 // less than any machine answers
	long := 6 * time.Second
	if timed {
		long = 30 * time.Second
	}
	redis := newRedis(t)
	redis.start(t)
	config := sharing(t, fmt.Sprintf("tools: {echo: {rate: %d/s, burst: %d}}\non_store_loss: local\nreplicas: 3\n", rate, burst))
	gates := serveThree(t, config, "REDIS_URL=redis://"+redis.address())
	for _, g := range gates {
		g.awaitShared(t)
		if !g.counts(t, "callgate_limits_local", "0") {
			t.Error("at first the limits are counted as not shared")
		}
	}
	allowed := func(f flow) float64 { return rate*f.span.Seconds() + burst }
	log := func(what string, f flow) {
		t.Helper()
		t.Logf("%s: %d of %d let pass in %.2f s, %.2f%% of %.0f", what, f.admitted, f.admitted+f.refused, f.span.Seconds(), 100*float64(f.admitted)/allowed(f), allowed(f))
		if len(f.odd) > 0 || f.unavailable > f.refused/10 {
			t.Errorf("%s: %d times limiter_unavailable, and also answered: %v", what, f.unavailable, f.odd)
		}
		if f.refused == 0 {
			t.Errorf("%s: nothing was refused, so no more was offered than may pass", what)
		}
	}
	interrupted := func() bool {
		for _, g := range gates {
			if strings.Contains(g.stderr.String(), "Redis is away") {
				return true
			}
		}
		return false
	}

	f := offer(t, gates, long, nil)
	log("shared", f)
	if most := allowed(f) * 1.01; float64(f.admitted) > most {
		t.Errorf("%d were let pass; at most %.0f may", f.admitted, most)
	}
	// Of the last token a part may be left. Tokens that nobody asks for while the bucket is full are lost, and so
	// they are where this machine stands still for that long.
	if least := (rate*f.spent.Seconds() + burst - 1) * 0.98; float64(f.admitted) < least {
		const full = time.Second * burst / rate
		if f.silence > full/2 || f.first > 2*full || interrupted() {
			t.Logf("not held against the gateways: the first refusal came after %v, and later none for %v", f.first, f.silence)
		} else {
			t.Errorf("%d were let pass; at least %.0f must", f.admitted, least)
		}
	}

	f = offer(t, gates, long, func() { redis.kill(t) })
	log("across the kill", f)
	if most := math.Floor(allowed(f)); float64(f.admitted) > most {
		t.Errorf("%d were let pass; at most %.0f may", f.admitted, most)
	}
	for i, g := range gates {
		if o := g.operators(t); o.Limits == "" || !o.Ready || !g.counts(t, "callgate_limits_local", "1") {
			t.Errorf("gateway %d does not say that Redis is away: %+v", i, o)
		}
	}

	var back time.Duration
	f = offer(t, gates, 6*time.Second, func() {
		redis.start(t)
		answers := time.Now()
		for _, g := range gates {
			g.awaitShared(t)
		}
		back = time.Since(answers)
	})
	log("across the return", f)
	if most := math.Floor(allowed(f)); float64(f.admitted) > most {
		t.Errorf("%d were let pass; at most %.0f may", f.admitted, most)
	}
	t.Logf("shared again after %v", back)
	if timed && back > 5*time.Second {
		t.Errorf("the limits are shared again after %v; expected 5s", back)
	}
	for i, g := range gates {
		if !g.counts(t, "callgate_limits_local", "0") {
			t.Errorf("gateway %d counts the limits as not shared", i)
		}
		if code := g.stop(t); code != exitAccepted {
			t.Errorf("gateway %d: exit code %d", i, code)
		}
	}
}

// TestEditReachesEveryReplica: an edit of the shared files is live in three
// processes soon, and what they say they serve is one thing.
func TestEditReachesEveryReplica(t *testing.T) {
	config := sharing(t, "replicas: 3\n")
	redis := newRedis(t)
	redis.start(t)
	gates := serveThree(t, config, "REDIS_URL=redis://"+redis.address())
	served := "" // by all of them
	// agree waits until all serve one other configuration: they do a moment before they say so.
	agree := func() {
		t.Helper()
		before := served
		eventually(t, "the gateways agree on another configuration", func() bool {
			served = gates[0].operators(t).Digest
			return served != before && !slices.ContainsFunc(gates, func(g *gate) bool {
				o := g.operators(t)
				return o.Digest != served || len(o.Faults) > 0
			})
		})
	}
	agree()
	policy := filepath.Join(filepath.Dir(config), "policy.csv")
	texts := []string{"p, Analyst, acme/alpha, echo, , deny\n# end\n", "p, Analyst, acme/alpha, *, , allow\n# end\n"}
	digests := map[string]bool{served: true}
	best := time.Duration(math.MaxInt64)
	// A machine that is busy with something else may need more than one try.
	for try := 0; try < 6 && (try < 2 || timed && best > 2*time.Second); try++ {
		want := []int{http.StatusForbidden, http.StatusOK}[try%2]
		if err := os.WriteFile(policy+".new", []byte(texts[try%2]), 0o600); err != nil {
			t.Fatal(err)
		}
		var live [3]time.Duration
		var waiting sync.WaitGroup
		began := time.Now()
		if err := os.Rename(policy+".new", policy); err != nil {
			t.Fatal(err)
		}
		for i, g := range gates {
			waiting.Go(func() {
				for time.Since(began) < patience {
					r, err := g.try(http.MethodPost, "http://"+g.listen+"/v1/calls", echoCall, "Content-Type", "text/plain")
					if err == nil && r.status == want {
						live[i] = time.Since(began)
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		waiting.Wait()
		t.Logf("live after %v", live)
		slowest := time.Duration(0)
		for i, d := range live {
			if d == 0 {
				t.Fatalf("gateway %d has not taken the edit up", i)
			}
			slowest = max(slowest, d)
		}
		best = min(best, slowest)
		agree()
		digests[served] = true
	}
	if timed && best > 2*time.Second {
		t.Errorf("the quickest edit took %v to reach all; expected 2s", best)
	}
	if len(digests) != 2 {
		t.Errorf("two policies have the digests %v", digests)
	}
}

// TestStoreLossRefuse: where the limits say so, nothing passes without Redis, at
// the start, when it dies and while it stands still, and nobody waits long.
func TestStoreLossRefuse(t *testing.T) {
	redis := newRedis(t)
	config := sharing(t, "default: {rate: 1000/s, concurrency: 100}\non_store_loss: refuse\n")
	g := serveGateIn(t, quickDir(t), config, "REDIS_URL=redis://"+redis.address(), somewhatLong())
	refuses := func(when string) {
		t.Helper()
		eventually(t, when+" calls are refused", func() bool { return g.call(t, echoCall).status != http.StatusOK })
		began := time.Now()
		r := g.call(t, echoCall)
		if r.status != http.StatusServiceUnavailable || r.code() != "limiter_unavailable" || r.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %v %s", when, r.status, r.header, r.body)
		}
		if took := time.Since(began); timed && took > 5*time.Second {
			t.Errorf("%s: refused after %v", when, took)
		}
		if o := g.operators(t); o.Limits == "" || !o.Ready || !g.counts(t, "callgate_limits_local", "1") {
			t.Errorf("%s: the operator reads %+v", when, o)
		}
	}
	shares := func(when string) {
		t.Helper()
		began := time.Now()
		g.awaitShared(t)
		if took := time.Since(began); timed && took > 5*time.Second {
			t.Errorf("%s: shared after %v; expected 5s", when, took)
		}
		eventually(t, when+" calls pass", func() bool {
			return g.call(t, echoCall).status == http.StatusOK && g.counts(t, "callgate_limits_local", "0")
		})
	}
	refuses("before Redis has started")
	redis.start(t)
	shares("when it has started")
	redis.kill(t)
	refuses("when it was killed")
	redis.start(t)
	shares("when it is back")
	redis.signal(t, syscall.SIGSTOP)
	refuses("while it stands still")
	redis.signal(t, syscall.SIGCONT)
	shares("when it continues")
	if code := g.stop(t); code != exitAccepted {
		t.Errorf("exit code %d", code)
	}
	for _, line := range []string{`"msg":"Redis is unreachable; limits are not shared"`, `"msg":"limits are shared on Redis"`} {
		if strings.Count(g.stderr.String(), line) < 3 {
			t.Errorf("the log does not say three times %s", line)
		}
	}
}

// TestStoreLossLocal: a gateway that starts without Redis lets its share pass,
// from buckets that begin empty, and shares when Redis comes.
func TestStoreLossLocal(t *testing.T) {
	redis := newRedis(t)
	config := sharing(t, "tools: {echo: {rate: 60/m, burst: 30}}\non_store_loss: local\nreplicas: 2\n")
	began := time.Now()
	g := serveGateIn(t, quickDir(t), config, "REDIS_URL=redis://"+redis.address())
	passed := 0
	for range 20 {
		switch r := g.call(t, echoCall); {
		case r.status == http.StatusOK:
			passed++
		case r.code() != "rate_limited":
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	if most := int(time.Since(began).Seconds() / 2); passed > most { // 60/m for two is one in two seconds
		t.Errorf("%d were let pass at once; the bucket of the share begins empty, and %d may", passed, most)
	}
	if o := g.operators(t); o.Limits == "" || !o.Ready {
		t.Errorf("the operator reads %+v", o)
	}
	redis.start(t)
	g.awaitShared(t)
}

// TestRedisThatIsNotFit: a gateway does not start with a Redis that would forget
// budgets, nor without the secrets that it is to use, and shows none of them.
func TestRedisThatIsNotFit(t *testing.T) {
	evicting := newRedis(t, "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
	evicting.start(t)
	dir := t.TempDir()
	config := sharing(t, "replicas: 1\n")
	with := func(redis string) string {
		path := filepath.Join(filepath.Dir(config), "other.yaml")
		if err := os.WriteFile(path, []byte("server: {"+anyPort+"}\ndata_dir: "+filepath.Join(dir, "data")+"\nredis: {"+redis+"}\n# end\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("http://user:hunter2@127.0.0.1:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CALLGATE_TEST_URL", "redis://:hunter2@127.0.0.1:1?max_retries=9")
	for redis, says := range map[string]string{
		`url: "redis://` + evicting.address() + `"`:                                  "found maxmemory-policy allkeys-lru, expected noeviction",
		`url: "env:CALLGATE_TEST_ABSENT"`:                                            "redis: url: found no environment variable CALLGATE_TEST_ABSENT",
		`url: "file:` + secret + `.absent"`:                                          secret + ".absent: found no such file",
		`url: "file:` + secret + `"`:                                                 "redis: found a url of another form",
		`url: "env:CALLGATE_TEST_URL"`:                                               "redis: found a url of another form",
		`cluster: {addresses: ["127.0.0.1:1"]}, password: "env:CALLGATE_TEST_NONE"`:  "redis: password: found no environment variable CALLGATE_TEST_NONE",
		`sentinel: {master: m, addresses: ["127.0.0.1:1"], password: "env:NO_SUCH"}`: "redis: sentinel: password: found no environment variable NO_SUCH",
	} {
		code, stdout, stderr := command(t, nil, "serve", "--config", with(redis))
		errors := slices.DeleteFunc(strings.SplitAfter(stderr, "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, "warning: ") })
		if code != exitUsage || stdout != "" || strings.Contains(stderr, "hunter2") || len(errors) != 1 || !strings.Contains(errors[0], says) {
			t.Errorf("%s: exit code %d: %s%s\nexpected one line with %q", redis, code, stdout, stderr, says)
		}
	}
}

// TestRedisPasswords: the right one lets in, whether in a URL or in a file, a
// wrong one leaves Redis away, and none is in anything that is written.
func TestRedisPasswords(t *testing.T) {
	t.Parallel()
	redis := newRedis(t, "--requirepass", "canary-redis-1")
	redis.start(t)
	config := sharing(t, "tools: {echo: {rate: 10/s}}\non_store_loss: refuse\n")
	for _, password := range []string{"canary-redis-1", "canary-redis-2"} {
		dir := quickDir(t)
		g := serveGateIn(t, dir, config, "REDIS_URL=redis://:"+password+"@"+redis.address())
		right := password == "canary-redis-1"
		if right {
			g.awaitShared(t)
		}
		r := g.call(t, echoCall)
		if (r.status == http.StatusOK) != right {
			t.Errorf("%s: %d %s", password, r.status, r.body)
		}
		visible := r.body + g.askAdmin(t, "/readyz").body + g.askAdmin(t, "/metrics").body
		if code := g.stop(t); code != exitAccepted {
			t.Errorf("%s: exit code %d", password, code)
		}
		if strings.Contains(visible, "canary-redis") {
			t.Errorf("a password is in what the gateway says: %s", visible)
		}
		unseen(t, g, filepath.Join(dir, "callgate-data"), "canary-redis")
	}
}

// TestRedisWaitsForARestart: a change of where the limits are is reported, and
// taken up at the next start.
func TestRedisWaitsForARestart(t *testing.T) {
	t.Parallel()
	redis := newRedis(t)
	redis.start(t)
	config := sharing(t, "replicas: 1\n")
	g := serveGateIn(t, quickDir(t), config, "REDIS_URL=redis://"+redis.address())
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), "redis: {", "redis: {prefix: \"other:\", ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key is reported", func() bool { return strings.Join(g.operators(t).Restart, " ") == "redis" })
	if r := g.call(t, echoCall); r.status != http.StatusOK {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// selfSigned writes a certificate for 127.0.0.1 and its key into a folder.
func selfSigned(t testing.TB, dir string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// TestRedisOverTLS: a Redis with a certificate of an operator's own is believed
// where ca_file names it, and only there; a URL without TLS is not used beside
// certificates.
func TestRedisOverTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, key := selfSigned(t, dir)
	redis := newRedis(t, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no")
	// It names the first of its options that it does not know.
	if output, _ := exec.Command("redis-server", "--tls-port", "0", "--no-such-option", "0").CombinedOutput(); !strings.Contains(string(output), "no-such-option") {
		t.Skip("skipped: this redis-server knows no TLS")
	}
	redis.secure = true
	redis.start(t)
	config := sharing(t, "tools: {echo: {rate: 10/s}}\non_store_loss: refuse\n")
	write := func(keys string) {
		t.Helper()
		text := "server: {" + anyPort + "}\nredis: {url: \"env:REDIS_URL\"" + keys + "}\n# end\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for keys, want := range map[string]int{", ca_file: " + certificate: http.StatusOK, "": http.StatusServiceUnavailable} {
		write(keys)
		g := serveGateIn(t, quickDir(t), config, "REDIS_URL=rediss://"+redis.address())
		if want == http.StatusOK {
			g.awaitShared(t)
		}
		if r := g.call(t, echoCall); r.status != want {
			t.Errorf("%q: %d %s; want %d", keys, r.status, r.body, want)
		}
		if want != http.StatusOK {
			eventually(t, "the operator reads why", func() bool { return strings.Contains(g.operators(t).Limits, "certificate") })
		}
		if code := g.stop(t); code != exitAccepted {
			t.Errorf("%q: exit code %d", keys, code)
		}
	}
	write(", ca_file: " + certificate)
	t.Setenv("REDIS_URL", "redis://"+redis.address())
	if code, _, stderr := command(t, nil, "serve", "--config", config); code != exitUsage || !strings.Contains(stderr, "ca_file: found certificates for a url without TLS") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestDocumentedUser gives a gateway the user of Redis that docs/redis.md
// describes: it lacks nothing, and is asked for nothing more.
func TestDocumentedUser(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	users := "user admin on >hunter2 ~* &* +@all\n"
	for line := range strings.Lines(string(page)) {
		if user, ok := strings.CutPrefix(line, "    user "); ok {
			users += "user " + strings.Replace(user, ">PASSWORD", ">hunter2", 1)
		}
	}
	if strings.Count(users, "\n") != 3 {
		t.Fatalf("the page describes %q; want the default user and the gateways'", users)
	}
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	redis := newRedis(t, "--aclfile", file)
	redis.start(t)
	config := sharing(t, "caller: {rate: 500/s}\ndefault: {rate: 1/h, burst: 2, concurrency: 2}\ntools: {echo: {rate: 100/s}}\nprojects: {acme/alpha: {rate: 100/s}}\non_store_loss: refuse\n")
	g := serveGateIn(t, quickDir(t), config, "REDIS_URL=redis://callgate:hunter2@"+redis.address())
	g.awaitShared(t)
	for i, want := range []int{200, 200, 429, 429} {
		if r := g.call(t, echoCall); r.status != want {
			t.Errorf("call %d: %d %s; want %d", i, r.status, r.body, want)
		}
	}
	for _, warning := range []string{"INFO is forbidden", "maxmemory-policy cannot be read"} {
		if strings.Contains(g.stderr.String(), warning) {
			t.Errorf("the log says: %s", warning)
		}
	}
	if denied := redis.ask(t, "AUTH admin hunter2", "ACL LOG"); !strings.HasSuffix(denied, "*0\r\n") {
		t.Errorf("the user was denied something: %q", denied)
	}
}
