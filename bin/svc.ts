/**
 * The command line: accounts, keys, credit, tokens, catalogue, ledger and certificates. With `--json` it prints one object on one line
 * (docs/catalogue.md, README.md), else text for a person. Exit status: 0 done, 1 failed or not in order, 2 wrong usage.
 * Each command's code is imported only when it runs.
 */
import { Command, CommanderError, Option } from 'commander';
import { CatalogueFileError } from '../core/catalogue-file/error.ts';
import { loadConfig } from '../core/config.ts';
import { KEY_PREFIXES } from '../core/keys.ts';
import type { Credit, NewAccount } from './svc/accounts.ts';
import type { Outcome } from './svc/failure.ts';
import type { NewKey } from './svc/keys.ts';
import { id, list, name, scopes, time, wholeNumber } from './svc/options.ts';

const MAX_CREDIT_AP = 1e12; // 100 million dollars: far below where sums stop being exact
const MAX_RATE_PER_MINUTE = 2 ** 31 - 1; // app.keys.rate_per_minute
const MAX_USER_TOKEN_SECONDS = 10 * 366 * 86_400;

const oneLine = (text: string): string => `${text.trim().replace(/\s*\n\s*/g, ' ')}\n`;

const program = new Command('svc')
  .description('Operate the service from the command line.')
  .exitOverride()
  .configureOutput({ outputError: (text, write) => write(oneLine(text.replace(/^error:/, 'svc:'))) });

/** Adds a command: what it returns is printed. */
function add(parent: Command, usage: string, description: string): Command {
  return parent.command(usage).description(description).option('--json', 'print one JSON object');
}

function print(outcome: Outcome, isJson: boolean | undefined): void {
  for (const note of outcome.notes ?? []) console.error(note);
  console.log(isJson ? JSON.stringify(outcome.json) : outcome.text);
  if (outcome.isProblem) process.exitCode = 1;
}

type Json = { readonly json?: boolean };

const account = program.command('account').description('Accounts.');
add(account, 'create', 'open an account')
  .requiredOption('--name <name>', 'what people call it', name)
  .addOption(new Option('--kind <kind>').choices(['personal', 'enterprise']).default('personal'))
  .option('--subject <sub>', "the user (a user token's sub) it belongs to", name)
  .addOption(new Option('--language <language>', 'of messages').choices(['ja', 'en']))
  .option('--card', 'a card is on file', false)
  .action(async (options: NewAccount & Json) => {
    const { createAccount } = await import('./svc/accounts.ts');
    print(await createAccount(loadConfig(), options), options.json);
  });

const key = program.command('key').description('API keys.');
add(key, 'issue', 'issue a key; its secret is shown once')
  .requiredOption('--account <id>', 'the account it spends from', id)
  .option('--name <name>', 'what people call it', name)
  .addOption(new Option('--prefix <prefix>', 'none given: svc_live_').choices(KEY_PREFIXES))
  .option('--scopes <list>', 'llm,tts,images,x,cert (default: all)', scopes)
  .option('--cap-per-request-ap <n>', 'AP that one request may hold', wholeNumber(0))
  .option('--cap-daily-ap <n>', 'AP a day', wholeNumber(0))
  .option('--cap-monthly-ap <n>', 'AP a month', wholeNumber(0))
  .option('--models <list>', 'the only models it may use', list)
  .option('--rate-per-minute <n>', 'requests a minute (default: 60)', wholeNumber(1, MAX_RATE_PER_MINUTE))
  .option('--expires-at <time>', 'ISO 8601', time)
  .action(async (options: NewKey & Json) => {
    const { issueKey } = await import('./svc/keys.ts');
    print(await issueKey(loadConfig(), options), options.json);
  });
add(key, 'revoke', 'revoke a key for good')
  .requiredOption('--key <id>', 'its id', id)
  .action(async (options: { readonly key: string } & Json) => {
    const { revokeKey } = await import('./svc/keys.ts');
    print(await revokeKey(loadConfig(), options.key), options.json);
  });

add(program, 'grant', 'put AP into an account, or by a negative adjustment take some out')
  .requiredOption('--account <id>', 'the account', id)
  .requiredOption('--ap <n>', 'how many', wholeNumber(-MAX_CREDIT_AP, MAX_CREDIT_AP))
  .addOption(new Option('--kind <kind>').choices(['purchase', 'grant', 'adjustment']).makeOptionMandatory())
  .requiredOption('--reason <text>', 'why; stands in the ledger', name)
  .action(async (options: Credit & Json) => {
    const { credit } = await import('./svc/accounts.ts');
    print(await credit(loadConfig(), options), options.json);
  });

add(program, 'user-token', 'sign a user token')
  .requiredOption('--sub <sub>', 'the user', name)
  .option('--expires-in <seconds>', 'its life', wholeNumber(1, MAX_USER_TOKEN_SECONDS), 3600)
  .action(async (options: { readonly sub: string; readonly expiresIn: number } & Json) => {
    const { makeUserToken } = await import('./svc/tokens.ts');
    print(await makeUserToken(loadConfig(), options), options.json);
  });

const adminToken = program.command('admin-token').description('Tokens for the admin GraphQL.');
add(adminToken, 'issue', 'issue a token; its secret is shown once')
  .requiredOption('--name <name>', "the operator's name", name)
  .addOption(new Option('--role <role>').choices(['reader', 'operator']).makeOptionMandatory())
  .action(async (options: { readonly name: string; readonly role: 'reader' | 'operator' } & Json) => {
    const { issueOperatorToken } = await import('./svc/tokens.ts');
    print(await issueOperatorToken(loadConfig(), options), options.json);
  });

const catalog = program
  .command('catalog')
  .description('Providers, models, prices, voices (docs/catalogue.md).');
add(catalog, 'import <file>', 'import a YAML file: all of it, or nothing and every mistake with its line')
  .option('--prune', 'retire the models that the file does not name', false)
  .action(async (file: string, options: { readonly prune: boolean } & Json) => {
    const { importFile } = await import('./svc/catalogue.ts');
    print(await importFile(loadConfig(), file, options), options.json);
  });
add(catalog, 'export', 'print the YAML that imports again to the same').action(async (options: Json) => {
  const { exportFile } = await import('./svc/catalogue.ts');
  print(await exportFile(loadConfig()), options.json);
});
add(
  catalog,
  'verify',
  'ask every provider whether it answers, takes our credential, and has the models of its routes',
).action(async (options: Json) => {
  const { verifyProviders } = await import('./svc/verify.ts');
  print(await verifyProviders(loadConfig(), process.env), options.json);
});

const c2pa = program.command('c2pa').description('What pictures are signed with.');
add(c2pa, 'chain', 'make a certificate chain and its key: C2PA_CERTIFICATE and C2PA_PRIVATE_KEY').action(
  async (options: Json) => {
    const { makeChain } = await import('./svc/c2pa.ts');
    print(await makeChain(), options.json);
  },
);

const ledger = program.command('ledger').description('The books.');
add(ledger, 'check', 'compare balances, ledger, holds and requests; exit status 1 when they differ').action(
  async (options: Json) => {
    const { checkLedger } = await import('./svc/ledger.ts');
    print(await checkLedger(loadConfig()), options.json);
  },
);

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : 2; // commander has said what is wrong
  } else {
    const message = error instanceof Error ? error.message : String(error);
    process.stderr.write(error instanceof CatalogueFileError ? `${message}\n` : oneLine(`svc: ${message}`));
    process.exitCode = 1;
  }
}
