// franz-go against a secured broker: `python -m tests.system.clients.by_hand_franz` starts both.
//
// Each line of standard input is "WORK TOPIC GROUP TRANSACTIONAL_ID"; each line of output is OK, or
// the error's text.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func main() {
	var options []kgo.Opt
	authority, err := os.ReadFile(os.Getenv("AUTHORITY"))
	must(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	config := &tls.Config{RootCAs: pool}
	user, password := os.Getenv("LOGIN_USER"), os.Getenv("LOGIN_PASSWORD")
	switch os.Getenv("MECHANISM") {
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	case "OAUTHBEARER":
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
		options = append(options, kgo.SASL(oauth.Oauth(func(ctx context.Context) (oauth.Auth, error) {
			token, err := issued(ctx, web, os.Getenv("TOKEN_URL"), user, password)
			return oauth.Auth{Token: token, Extensions: map[string]string{"traceId": "7"}}, err
		})))
	default:
		pair, err := tls.LoadX509KeyPair(os.Getenv("KEY"), os.Getenv("KEY"))
		must(err)
		config.Certificates = []tls.Certificate{pair}
	}
	options = append(options, kgo.SeedBrokers(os.Getenv("BOOTSTRAP")), kgo.DialTLSConfig(config))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		fmt.Println(outcome(do(options, words[0], words[1], words[2], words[3])))
	}
}

// A token by client credentials (RFC 6749, 4.4).
func issued(ctx context.Context, web *http.Client, url_, user, password string) (string, error) {
	form := strings.NewReader(url.Values{"grant_type": {"client_credentials"}}.Encode())
	request, err := http.NewRequestWithContext(ctx, "POST", url_, form)
	if err != nil {
		return "", err
	}
	request.SetBasicAuth(user, password)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := web.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var found struct {
		Token string `json:"access_token"`
	}
	err = json.NewDecoder(answer.Body).Decode(&found)
	return found.Token, err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func outcome(err error) string {
	var known *kerr.Error
	switch {
	case err == nil:
		return "OK"
	case errors.As(err, &known):
		return known.Message
	}
	return err.Error()
}

func do(options []kgo.Opt, work, topic, group, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch work {
	case "read":
		options = append(options, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic))
	case "transact":
		options = append(options, kgo.TransactionalID(id))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	record := &kgo.Record{Topic: topic, Value: []byte("v")}
	switch work {
	case "produce":
		return client.ProduceSync(ctx, record).FirstErr()
	case "stay":
		// For longer than the session of a short token.
		for end := time.Now().Add(8 * time.Second); time.Now().Before(end); {
			if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
				return err
			}
			time.Sleep(100 * time.Millisecond)
		}
		return nil
	case "read":
		fetches := client.PollFetches(ctx)
		return fetches.Err()
	case "transact":
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
		return client.EndTransaction(ctx, kgo.TryCommit)
	case "create":
		_, err := kadm.NewClient(client).CreateTopic(ctx, 1, 1, nil, topic)
		return err
	case "acls":
		every := kadm.NewACLs().AnyResource().Allow().AllowHosts().Deny().DenyHosts().
			Operations().ResourcePatternType(kadm.ACLPatternAny)
		found, err := kadm.NewClient(client).DescribeACLs(ctx, every)
		if err != nil {
			return err
		}
		return found[0].Err
	case "users":
		found, err := kadm.NewClient(client).DescribeUserSCRAMs(ctx, "alice")
		if err != nil {
			return err
		}
		_ = found
		return nil
	}
	return fmt.Errorf("there is no %s", work)
}
