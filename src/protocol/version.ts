/** The product version, from package.json at build time. */
export const version: string = __POSTBELL_VERSION__;
