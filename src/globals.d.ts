/** Set by the bundler and by the test runner from package.json. */
declare const __POSTBELL_VERSION__: string;

declare module '*.sql' {
  const text: string;
  export default text;
}
