package configs

import "testing"

func TestOriginForm(t *testing.T) {
	for s, want := range map[string]bool{
		"https://app.example.com": true, "http://app.example.com:8080": true, "https://app.example.com:8443": true, "http://localhost": true,
		"http://127.0.0.1:3000": true, "http://[::1]:3000": true, "http://[::1]": true, "https://xn--bcher-kva.example": true, "http://x:443": true,
		"": false, "*": false, "null": false, "app.example.com": false, "https://": false, "https://app.example.com/": false,
		"https://app.example.com/x": false, "https://app.example.com?": false, "https://app.example.com#": false, "HTTPS://app.example.com": false,
		"https://App.example.com": false, "https://app.example.com:443": false, "http://app.example.com:80": false, "https://app.example.com:": false,
		"https://app.example.com:0443": false, "https://app.example.com:99999": false, "https://user@app.example.com": false, "ftp://app.example.com": false,
		"https://*.example.com": false, "https://app .example.com": false, "https://bücher.example": false, "chrome-extension://abc": false, "https://app.example.com\n": false,
	} {
		if originForm(s) != want {
			t.Errorf("%q: want %t", s, want)
		}
	}
}

func TestHostForm(t *testing.T) {
	for s, want := range map[string]bool{
		"gateway.example.com": true, "gateway": true, "10.0.0.1": true, "2001:db8::1": true, "a_b.example.com": true, "xn--bcher-kva.example": true,
		"": false, "*": false, "*.example.com": false, "Gateway.example.com": false, "gateway.example.com:8080": false, "gateway.example.com.": false, ".example.com": false,
		"https://gateway.example.com": false, "[2001:db8::1]": false, "2001:DB8::1": false, "2001:db8:0::1": false, "gateway.example.com/": false, "bücher.example": false, "a b": false,
		"-a.example.com": false, "user@gateway.example.com": false,
	} {
		if hostForm(s) != want {
			t.Errorf("%q: want %t", s, want)
		}
	}
}
